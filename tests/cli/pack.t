# The allocator alone: heights with proofs, offsets, why something cannot fit.
--- file five.csv
id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
--- file more.csv
size,start,end,buffer_id,alignment,hint,offset,gaps
6,0,9,a,4,,,
5,3,4,b,4,,,
2,1000000000000,1000000000009,c,2,,6,1000000000002-1000000000004
--- file bad.csv
id,lower,upper,size,colour,size
--- file worse.csv
id,lower,upper,size,alignment
a,0,3,4
b,zero,3,4,1
c,3,2,-4,0
d,3,4,99999999999999999999,1
--- file below.csv
id,lower,upper,size,alignment,gaps
0,0,2,11,1,
1,7,8,4,1,
2,4,16,23,1,10-14
3,8,21,23,1,12-16
4,10,18,15,1,16-17
5,18,33,32,1,
6,2,17,37,1,8-16
7,10,25,32,1,23-24
8,0,7,19,1,2-3
--- file none.csv
--- file quoted.csv
"id",lower,upper, "size","relations"
"a, ""first""",0,3,4,
b,3,9,4,"share:c,d"
"c,d",4,9,4,
--- file open.csv
id,lower,upper,size
a,0,3,4
"b,0,3,4
c,0,3,4
--- file behind.csv
id,lower,upper,size
a,0,"3" 3,4
--- file list.csv
id,size,conflicts
a,4,b c
b,2,c
c,4,d
d,3,a
--- file wrong-list.csv
id,size,conflicts
a,4,b a e
b,2,
--- file streams.csv
id,lower,upper,size
a,0 0,3 0,4
b,3 0,5 2,2
c,0 1,2 4,4
d,5 2,7 5,3
--- file wrong-streams.csv
id,lower,upper,size,gaps
a,0 0,3 0,4,
b,3,5 2,2,
c,0 1,0 0,4,
d,5 2,7 5,3,6-7
--- file steps.csv
id,lower,upper,size
a,0,2,4
b,1,4,2
c,3,6,4
d,5,8,3
e,0,8,1
f,2,6,3
--- run amphora pack five.csv --planner exact
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
exact                             12              12  the least               0  <ms>
--- stderr
--- run amphora pack five.csv --capacity 11
--- exit 3
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          -              12  infeasible              0  <ms>
--- stderr
five.csv: error: no placement within 11 bytes exists: these 3 buffers need at least 12, and none of them can be left out
five.csv: note: b1: 4 bytes, alive 0 to 3
five.csv: note: b3: 4 bytes, alive 0 to 9
five.csv: note: b5: 4 bytes, alive 0 to 21
--- run amphora pack five.csv --json
--- exit 0
--- stdout
{"buffers":5,"planner":"portfolio","height":12,"bound":12,"proved":true,"fits":true,"outcome":"fits","ms":<ms>,"nodes":0}
--- stderr
--- run amphora pack more.csv -o out.csv
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
portfolio                         13              13  the least               0  <ms>
--- stderr
--- run cat out.csv
--- exit 0
--- stdout
id,lower,end,size,alignment,hint,gaps,offset
a,0,9,6,4,,,0
b,3,4,5,4,,,8
c,1000000000000,1000000000009,2,2,,1000000000002-1000000000004,6
--- stderr
--- run amphora pack below.csv | grep -c 'portfolio  *115  *115  the least'
--- exit 0
--- stdout
1
--- stderr
--- run amphora pack list.csv -o out.csv
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
portfolio                         11              11  the least               0  <ms>
--- stderr
--- run cat out.csv
--- exit 0
--- stdout
id,size,conflicts,offset
a,4,b c,0
b,2,c,8
c,4,d,4
d,3,a,8
--- stderr
--- run amphora pack wrong-list.csv
--- exit 1
--- stdout
--- stderr
wrong-list.csv:2:7: error: 'a' is not a conflict: it names the buffer itself
    a,4,b a e
          ^
wrong-list.csv:2:9: error: 'e' is not a conflict: there is no buffer 'e'
    a,4,b a e
            ^
--- run amphora pack streams.csv -o out.csv
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          8               8  the least               0  <ms>
--- stderr
--- run cat out.csv
--- exit 0
--- stdout
id,lower,upper,size,offset
a,0 0,3 0,4,4
b,3 0,5 2,2,4
c,0 1,2 4,4,0
d,5 2,7 5,3,4
--- stderr
--- run amphora pack streams.csv --capacity 5
--- exit 3
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          -               8  infeasible              0  <ms>
--- stderr
streams.csv: error: no placement within 5 bytes exists: these 2 buffers need at least 8, and none of them can be left out
streams.csv: note: a: 4 bytes, alive 0 to 3 | 0 to 0
streams.csv: note: c: 4 bytes, alive 0 to 2 | 1 to 4
--- run amphora pack streams.csv --svg out.svg
--- exit 2
--- stdout
--- stderr
streams.csv: error: --svg draws lives on one line of time: no conflicts, one stream
--- run amphora pack wrong-streams.csv
--- exit 1
--- stdout
--- stderr
wrong-streams.csv:3:5: error: lower and upper of all rows have the same number of streams, 2
    b,3,5 2,2,
        ^
wrong-streams.csv:4:7: error: the life of c ends before it begins in stream 1
    c,0 1,0 0,4,
          ^
wrong-streams.csv:5:13: error: lives on several streams have no gaps
    d,5 2,7 5,3,6-7
                ^
--- run amphora pack bad.csv
--- exit 1
--- stdout
--- stderr
bad.csv:1:21: note: column 'colour' is not read
    id,lower,upper,size,colour,size
                        ^
bad.csv:1:28: error: a second column 'size'
    id,lower,upper,size,colour,size
                               ^
--- run amphora pack worse.csv
--- exit 1
--- stdout
--- stderr
worse.csv:2:1: error: 4 fields under 5 columns
    a,0,3,4
    ^
worse.csv:3:3: error: lower 'zero' is not a time
    b,zero,3,4,1
      ^
worse.csv:4:5: error: the life of c ends before it begins
    c,3,2,-4,0
        ^
worse.csv:4:7: error: size '-4' is not a whole number of at least 0
    c,3,2,-4,0
          ^
worse.csv:4:10: error: alignment '0' is not a whole number of at least 1
    c,3,2,-4,0
             ^
worse.csv:5:7: error: size '99999999999999999999' is not a whole number of at least 0
    d,3,4,99999999999999999999,1
          ^
--- run amphora pack none.csv
--- exit 1
--- stdout
--- stderr
none.csv: error: there is no heading
--- run amphora pack missing.csv
--- exit 1
--- stdout
--- stderr
missing.csv: error: cannot open: No such file or directory
--- run amphora pack five.csv --planner best
--- exit 2
--- stdout
--- stderr
amphora: error: no planner is called 'best'
amphora: note: all: every one of these
amphora: note: greedy_by_size: offline: largest first, each in its lowest gap
amphora: note: bysize: online: the smallest free block that fits
amphora: note: bottom: online: the lowest free block, at its low end
amphora: note: top: online: the highest free block, at its low end
amphora: note: tops: online: the highest free block, at its high end
amphora: note: bottle: online: bottom and tops in turn, away from the peak step
amphora: note: bottles: online: the same, away from the nearest local peak
amphora: note: flip: online: bottom and tops in turn, volume by volume
amphora: note: shuffle: online: bottom for volumes as large as the first one alive at the peak, tops for others
amphora: note: random: offline: orders drawn from the seed, each in its lowest gap
amphora: note: first_fit: offline: in the order of birth, each in its lowest gap
amphora: note: greedy_by_conflicts: offline: most conflicts first, each in its lowest gap
amphora: note: exact: offline: a search for the least height, with a proof
amphora: note: stack_by_size: offline: largest first, each above all that it conflicts with (TVM)
amphora: note: stack_by_conflicts: offline: most conflicts first, each above all of these (TVM)
amphora: note: layers: offline: sizes within a factor of 1.4 together, largest first, each from the peak on to both ends of time, in its lowest gap
amphora: note: large: online: best fit from the peak on to both ends of time, for many buffers
amphora: note: squeeze: offline: large, then what stands highest drives out others below a falling limit
amphora: note: hill_climb: offline: greedy by size, improved by swaps of turns
amphora: note: portfolio: all of the above that are quick, then exact from the best
--- run amphora pack
--- exit 2
--- stdout
--- stderr
amphora: error: pack: missing PROBLEM
amphora: note: amphora pack --help lists the options
--- file gap.csv
id,lower,upper,size,gaps,hint
long,0,9,8,2-4 5-8@0:2,4
a,2,4,8,,
b,5,8,6,,
c,4,5,4,,0
--- file net.csv
id,lower,upper,size,relations,size:far,pool
in,0,2,8,,8,
out,1,3,8,below:in@2,8,
cat,3,6,8,,0,
one,2,5,4,inside:cat,4,
two,3,4,4,inside:cat@4,4,
odd,4,6,2,apart:one,2,
big,0,6,20,,20,
fix,0,6,2,,2,far
--- file wrong.csv
id,lower,upper,size,gaps,relations,pool
a,0,9,10,3-1,inside:zz,near
b,0,9,10,3-5 4-6,outside:a same:b,memory
c,0,9,10,3-5@8:12,below:a@q inside:a@-1,
--- run amphora pack gap.csv -o out.csv
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
portfolio                         12              12  the least               0  <ms>
hints   2 of 2 kept
--- stderr
--- run cat out.csv
--- exit 0
--- stdout
id,lower,upper,size,hint,gaps,offset
long,0,9,8,4,2-4 5-8@0:2,4
a,2,4,8,,,0
b,5,8,6,,,6
c,4,5,4,0,,0
--- stderr
--- run amphora pack net.csv --pool near=18:partition=4 --pool far=64:cost=3 --planner exact -o out.csv
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
exact                             36              36  the least               5  <ms>
pool    near: 14 of 18 bytes
pool    far: 22 of 64 bytes
cost    66, at least 66
--- stderr
--- run cat out.csv
--- exit 0
--- stdout
id,lower,upper,size,size:far,relations,pool,offset
in,0,2,8,8,,near,6
out,1,3,8,8,below:in@2,near,4
cat,3,6,8,0,,near,0
one,2,5,4,4,inside:cat,near,0
two,3,4,4,4,inside:cat@4,near,4
odd,4,6,2,2,apart:one,near,8
big,0,6,20,20,,far,0
fix,0,6,2,2,,far,20
--- stderr
--- run amphora pack net.csv --pool near=18:partition=4 --pool far=21:cost=3
--- exit 3
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          -              34  infeasible              1  <ms>
--- stderr
net.csv: error: no placement within 39 bytes exists: these 2 buffers cannot be placed, and none of them can be left out
net.csv: note: big: 20 bytes, alive 0 to 6
net.csv: note: fix: 2 bytes, alive 0 to 6
--- run amphora pack wrong.csv
--- exit 1
--- stdout
--- stderr
wrong.csv:2:24: error: there is no pool 'near'
    a,0,9,10,3-1,inside:zz,near
                           ^
wrong.csv:2:24: note: memory is one
    a,0,9,10,3-1,inside:zz,near
                           ^
wrong.csv:2:10: error: '3-1' is not a gap within the life, behind the one before, like 3-5 or 3-5@0:64
    a,0,9,10,3-1,inside:zz,near
             ^
wrong.csv:3:14: error: '4-6' is not a gap within the life, behind the one before, like 3-5 or 3-5@0:64
    b,0,9,10,3-5 4-6,outside:a same:b,memory
                 ^
wrong.csv:4:10: error: '3-5@8:12' is not a gap within the life, behind the one before, like 3-5 or 3-5@0:64
    c,0,9,10,3-5@8:12,below:a@q inside:a@-1,
             ^
wrong.csv:2:14: error: 'inside:zz' is not a relation: there is no buffer 'zz'
    a,0,9,10,3-1,inside:zz,near
                 ^
wrong.csv:3:18: error: 'outside:a' is not a relation: inside, share, same, below or apart, then :ID
    b,0,9,10,3-5 4-6,outside:a same:b,memory
                     ^
wrong.csv:3:28: error: 'same:b' is not a relation: it names the buffer itself
    b,0,9,10,3-5 4-6,outside:a same:b,memory
                               ^
wrong.csv:4:19: error: 'below:a@q' is not a relation: what follows @ is not a number of bytes
    c,0,9,10,3-5@8:12,below:a@q inside:a@-1,
                      ^
wrong.csv:4:29: error: 'inside:a@-1' is not a relation: what follows @ is not a number of bytes
    c,0,9,10,3-5@8:12,below:a@q inside:a@-1,
                                ^
--- run amphora pack gap.csv --pool near=1x
--- exit 2
--- stdout
--- stderr
amphora: error: --pool takes NAME=BYTES[:align=N][:partition=N][:cost=N], not near=1x
--- file marked.csv
﻿id,lower,upper,size,hint
a,0,2,5,-1
b,1,3,4,0
--- run amphora pack marked.csv
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          9               9  the least               0  <ms>
hints   1 of 1 kept
--- stderr
--- file twice.csv
id,lower,upper,size,relations
a,0,2,5,
a,1,3,4,
b,1,3,4,share:a
--- run amphora pack twice.csv
--- exit 1
--- stdout
--- stderr
twice.csv:4:9: error: 'share:a' is not a relation: several buffers are called 'a'
    b,1,3,4,share:a
            ^
--- file pins.csv
id,lower,upper,size,offset,alignment,gaps
a,0,2,5,0,1,
b,1,3,5,3,1,2-3
c,0,3,5,,8,
--- run amphora pack pins.csv
--- exit 3
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          -              15  infeasible              0  <ms>
--- stderr
pins.csv: error: no placement within 2,305,843,009,213,693,951 bytes exists: these 2 buffers cannot be placed, and none of them can be left out
pins.csv: note: a: 5 bytes, alive 0 to 2, pinned at 0
pins.csv: note: b: 5 bytes, alive 1 to 3, pinned at 3, gaps 2-3
--- file odd.csv
id,lower,upper,size,offset,alignment
a,0,2,5,3,2
--- run amphora pack odd.csv --capacity 100
--- exit 3
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          -               5  infeasible              0  <ms>
--- stderr
odd.csv: error: no placement within 100 bytes exists: one buffer cannot be placed
odd.csv: note: a: 5 bytes, alive 0 to 2, at a multiple of 2, pinned at 3
--- run amphora pack quoted.csv --capacity 1K -o out.csv
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          4               4  the least               0  <ms>
--- stderr
--- run cat out.csv
--- exit 0
--- stdout
id,lower,upper,size,relations,offset
"a, ""first""",0,3,4,,0
b,3,9,4,"share:c,d",0
"c,d",4,9,4,,0
--- stderr
--- run cat quoted.csv | amphora pack /dev/stdin --pool near=0.5K:align=4
--- exit 0
--- stdout
planner                       height           bound                      nodes  ms
portfolio                          4               4  the least               0  <ms>
--- stderr
--- run amphora pack open.csv
--- exit 1
--- stdout
--- stderr
open.csv:3:1: error: a quote is not closed
    "b,0,3,4
    ^
open.csv:3:1: error: 1 fields under 4 columns
    "b,0,3,4
    ^
--- run amphora pack behind.csv
--- exit 1
--- stdout
--- stderr
behind.csv:2:9: error: behind a quoted field comes a comma or the end of the line
    a,0,"3" 3,4
            ^
--- run amphora pack steps.csv --planner first_fit --capacity 11
--- exit 3
--- stdout
planner                       height           bound                      nodes  ms
first_fit                          -              11  undecided               0  <ms>
--- stderr
steps.csv: error: undecided: no placement was found, and none was ruled out; none is below 11 bytes
steps.csv: note: first_fit does not search; --planner portfolio does
