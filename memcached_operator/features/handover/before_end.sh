# Waits until the items of a server have moved, before its memcached is ended.
#
#   sh before_end.sh FOLDER
#
# FOLDER: the one of handover_ending.lua, by which the operator ends this. It ends by itself 20 s after the last word of
# an operator, and at once where memcached runs without its proxy.
# For any POSIX shell with a sleep that takes fractions.
set -u
cd "$1" || exit
[ -e listens ] || exit 0
: >ending
last='' left=100
until [ -e done ] || [ "$left" -eq 0 ]; do
    heard=
    [ ! -e heard ] || read -r heard <heard
    if [ "$heard" = "$last" ]; then left=$((left - 1)); else last=$heard left=100; fi
    sleep 0.2 || exit 0
done
