# embed.cmake - cmake -DOUT=file.c -DFILES=a;b -P embed.cmake: each file as an
# array of bytes with a NUL behind, named after the file: style.css ->
# embedded_style_css.
set(text "/* made by tools/embed.cmake */\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "extern const char embedded_${name}[];\n"
         "const char embedded_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
