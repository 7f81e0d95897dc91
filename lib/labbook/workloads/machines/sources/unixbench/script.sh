# One of the shell tests' scripts: a text is sorted, dumped, searched and counted. $1: which of them.
set -e
sort text > sorted.$1
od -c sorted.$1 | sort -k 2 > dumped.$1
grep the sorted.$1 | tee found.$1 | wc > counted.$1
read -r lines words letters < counted.$1
test "$lines" -gt 0
rm sorted.$1 dumped.$1 found.$1 counted.$1
