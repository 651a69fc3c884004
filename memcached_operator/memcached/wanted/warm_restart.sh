# Runs memcached so that the next one in this pod takes over its items.
#
#   sh -uc SCRIPT memcached ITEMS ASKED COMMAND...
#
# ITEMS: the memory file, in a volume that outlasts the container. ASKED: a file; when it changes, memcached is to start
# again. COMMAND: memcached's own.
# memcached writes out what the next one must know, ITEMS.meta, on SIGUSR1 alone, and takes that away as it reads it:
# where it is missing, memcached had no time to end, and begins cold. On one that is empty it aborts.
# For any POSIX shell; besides that sleep and rm. Of two dollar signs Kubernetes takes one away, as of any command.
items=$1 asked=$2
shift 2
every_s=5
server=
# The kubelet's SIGTERM. A shell that is process 1 gets no signal that it does not trap.
trap '[ -n "$server" ] || exit 0; kill -USR1 "$server"' TERM
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
"$@" &
server=$!
(
    was=
    IFS= read -r was <"$asked"
    while sleep "$every_s"; do
        now=
        IFS= read -r now <"$asked"
        [ "$now" = "$was" ] || kill -USR1 "$server"
        was=$now
    done
) 2>/dev/null &
watcher=$!
# A signal ends the wait, and not what is waited for.
while
    wait "$server"
    ended=$?
    kill -0 "$server" 2>/dev/null
do :; done
kill "$watcher" 2>/dev/null
if [ "$ended" -gt 128 ] && [ -e "$items.meta" ]; then
    echo "memcached could not read $items.meta: the next one begins without items." >&2
    rm -f "$items.meta"
fi
exit "$ended"
