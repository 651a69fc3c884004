# Runs memcached so that it can fill itself from others, or as it is where it cannot.
#
#   sh handover.sh LUA PEERS MEMCACHED ARGUMENTS...
#
# LUA: the file handover.lua. PEERS: the one that it reads. MEMCACHED: the program, then what it is started with.
# Clients use port 11211, peers and the operator 11210, also without the proxy: "stats proxy" says there what runs.
# For any POSIX shell, and no other program.
set -u
lua=$1 peers=$2 program=$3
shift 3
version=$("$program" --version)
version=${version##* }
major=${version%%.*} minor=${version#*.}
patch=${minor#*.} minor=${minor%%.*}
patch=${patch%%[!0-9]*} # as of 1.6.45-rc1
missing="it is older than 1.6.45"
case $major.$minor.$patch in
*[!0-9.]* | .* | *..* | *.) ;; # no version
*) [ "$((major * 1000000 + minor * 1000 + patch))" -lt 1006045 ] || missing= ;;
esac
case $("$program" --help) in
*proxy_config*) ;;
*) missing=${missing:-"it was built without the proxy"} ;;
esac
if [ -z "$missing" ]; then
    exec "$program" -l 'proto[proxy]:*:11211,proto[ascii]:*:11210' -o "proxy_config=$lua,proxy_arg=$peers" "$@"
fi
echo "This memcached takes part in no hand-over, as $missing." >&2
exec "$program" -l '*:11211,*:11210' "$@"
