#!/bin/sh
# manual.sh AMPHORA FOLDER: manual pages and completions, as the
# program prints them.
set -eu
amphora=$1
folder=$2
for shell in bash zsh fish; do
    "$amphora" --completion $shell >"$folder/amphora.$shell"
done
mv "$folder/amphora.zsh" "$folder/_amphora"
commands=$("$amphora" --man | sed -n 's/^\.BR amphora\\-\([a-z]*\) .*/\1/p')
for command in $commands; do
    "$amphora" --man "$command" >"$folder/amphora-$command.1"
done
"$amphora" --man >"$folder/amphora.1"
