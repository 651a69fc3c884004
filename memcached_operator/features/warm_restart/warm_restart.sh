# Runs memcached so that the next one in this pod takes over its items.
#
#   sh warm_restart.sh ITEMS REQUEST COMMAND...
#
# ITEMS: the memory file, in a volume that outlasts the container. REQUEST: a file; when it changes, memcached is to start
# again. COMMAND: memcached's own.
# memcached writes out what the next one must know, ITEMS.meta, on SIGUSR1 alone, and takes that away as it reads it:
# where it is missing, memcached had no time to end, and begins cold. On one that is empty it aborts.
# For any POSIX shell; besides that sleep and rm.
set -u
items=$1 request=$2
shift 2
every_s=5
server= stopped= was=
# Before all that takes time: what changes from here on is a request to this container.
IFS= read -r was <"$request"
# The kubelet's SIGTERM. A shell that is process 1 gets no signal that it does not trap.
trap 'stopped=1 caught=1; [ -z "$server" ] || kill -USR1 "$server" 2>/dev/null' TERM
if [ -e "$items.meta" ]; then
    while IFS= read -r line; do :; done <"$items.meta"
    if [ -s "$items.meta" ] && [ -z "$line" ]; then
        sleep 1 # memcached takes no items that were written out in the same second
    else
        echo "The items are lost: the former memcached did not finish to write $items.meta." >&2
        rm -f "$items.meta"
    fi
elif [ -e "$items" ]; then
    echo "The items are lost: the former memcached ended before it could write them out." >&2
fi
[ -z "$stopped" ] || exit 0
"$@" &
server=$!
[ -z "$stopped" ] || kill -USR1 "$server" # it came between the two
(
    while sleep "$every_s" && kill -0 "$server"; do
        now=
        IFS= read -r now <"$request"
        [ "$now" = "$was" ] || kill -USR1 "$server"
        was=$now
    done
) 2>/dev/null &
watcher=$!
# A signal ends the wait with a status of its own. Where the server has ended by then a shell may have noticed that or not,
# and bash may have lost its status, and would wait for ever.
while
    caught=
    wait "$server"
    ended=$?
    [ -n "$caught" ] && kill -0 "$server" 2>/dev/null
do :; done
kill "$watcher" 2>/dev/null
if [ -n "$stopped" ]; then
    [ "$ended" -ne 143 ] || [ ! -e "$items.meta" ] || ended=0 # the signal's
elif [ "$ended" -gt 128 ] && [ "$ended" -ne 138 ] && [ -e "$items.meta" ]; then # 138: it did not take SIGUSR1 yet
    echo "memcached could not read $items.meta: the next one begins without items." >&2
    rm -f "$items.meta"
fi
exit "$ended"
