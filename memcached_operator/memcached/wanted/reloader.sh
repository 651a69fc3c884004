# Lets a memcached start once what its Secrets hold is good, and has it reload that when it changes.
#
#   sh -c SCRIPT reloader TLS AUTH OPTION...
#
# TLS, AUTH: the names of the Secrets, "" for none. OPTION: memcached's own, by which the server uses them.
# memcached is the judge: one is started for a moment, which listens on a socket in a file. While they are bad, this
# ends once for each different problem, for the pod's status to tell it, and waits then: no crash loop.
# For any POSIX shell; besides that readlink, sleep, mkdir, rm and cat, which busybox and Debian have.
set -u
mounted=/etc/memcached
state=/dev/shm/reloader # the pod's: it outlasts a container that ends, and is gone with the pod
processes=/proc
told=/dev/termination-log
every_s=5

tls=$1 auth=$2
shift 2

# What is wrong, in a line that begins with the reason; nothing where all is good.
judge() {
    if [ -n "$tls" ]; then
        case " $* " in *ssl_ca_cert=*) ca=ca.crt ;; *) ca= ;; esac
        missing CertificateInvalid "$tls" tls tls.crt tls.key $ca || return
        can_reload || return
    fi
    if [ -n "$auth" ]; then
        missing PasswordsInvalid "$auth" auth password-file || return
        passwords <"$mounted/auth/password-file" || return
    fi
    try "$@"
}

# REASON SECRET FOLDER KEY...
missing() {
    reason=$1 secret=$2 folder=$mounted/$3
    shift 3
    for key; do
        [ -s "$folder/$key" ] && continue
        for any in "$folder"/*; do
            if [ -e "$any" ]; then
                echo "$reason: the Secret $secret has no key $key, or nothing in it"
                return 1
            fi
        done
        echo "SecretNotFound: there is no Secret $secret with the key $key"
        return 1
    done
}

can_reload() {
    version=$(memcached --version 2>/dev/null) || return 0 # what follows says why it does not start
    version=${version#memcached }
    major=${version%%.*} rest=${version#*.}
    minor=${rest%%.*} patch=${rest#*.}
    patch=${patch%%[!0-9]*}
    case $major.$minor in
        1.[0-5]) ;;
        1.6) [ "${patch:-0}" -lt 40 ] || return 0 ;;
        *) return 0 ;;
    esac
    echo "ReloadUnsupported: memcached $version takes no renewed certificate while it runs: use 1.6.40 or newer, or \
spec.tls.reload: Restart"
    return 1
}

# memcached ignores the ninth line and what follows, and takes a user that nobody can give.
passwords() {
    number=0 carriage=$(printf '\r')
    while IFS= read -r line || [ -n "$line" ]; do
        number=$((number + 1))
        line=${line%"$carriage"}
        user=${line%%:*}
        case $line in
            [!:]*:?*) [ "$user" = "${user#* }" ] && [ "$number" -le 8 ] && continue ;;
        esac
        if [ "$number" -gt 8 ]; then
            wrong="there is a line $number: memcached takes at most 8"
        else
            wrong="line $number must be user:password, without a space in the user"
        fi
        echo "PasswordsInvalid: key password-file of the Secret $auth: $wrong"
        return 1
    done
}

try() {
    rm -f "$state/socket"
    memcached -s "$state/socket" -m 8 -t 1 -c 64 "$@" >"$state/said" 2>&1 &
    trial=$! tries=0
    while kill -0 "$trial" 2>/dev/null && [ "$tries" -lt 100 ]; do
        if [ -S "$state/socket" ]; then
            kill -9 "$trial" # on another signal it takes a second
            wait "$trial" 2>/dev/null
            return 0
        fi
        tries=$((tries + 1))
        sleep 0.1
    done
    kill -9 "$trial" 2>/dev/null
    wait "$trial" 2>/dev/null
    said="memcached does not start, and says nothing"
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in *[Aa]uthfile* | 'Error loading'*) said=$line && break ;; ?*) said=$line ;; esac
    done <"$state/said"
    case $said in
        *[Aa]uthfile*) echo "PasswordsInvalid: key password-file of the Secret $auth: $said" ;;
        *chain*) echo "CertificateInvalid: key tls.crt of the Secret $tls: $said" ;;
        *'CA cert'*) echo "CertificateInvalid: key ca.crt of the Secret $tls: $said" ;;
        *'the key'*) echo "CertificateInvalid: key tls.key of the Secret $tls: $said" ;;
        *) [ -n "$tls" ] && echo "CertificateInvalid: $said" || echo "PasswordsInvalid: $said" ;;
    esac
    return 1
}

# Which writes of the kubelet the files are of.
written() {
    for each in tls auth; do readlink "$mounted/$each/..data"; done 2>/dev/null
}

servers() {
    for each in "$processes"/[0-9]*; do
        read -r name <"$each/comm" && [ "$name" = memcached ] && echo "${each##*/}"
    done 2>/dev/null
}

mkdir -p "$state"
# Where a server runs, only this container was started again: its pod is to stay ready.
[ -n "$(servers)" ] || rm -f "$state/ready"
seen=
if [ ! -e "$state/ready" ]; then
    while
        seen=$(written)
        problem=$(judge "$@")
        [ -n "$problem" ]
    do
        if [ "$problem" != "$(cat "$state/told" 2>/dev/null)" ]; then
            echo "$problem" >"$state/told"
            echo "$problem" >"$told"
            echo "$problem"
            exit 1
        fi
        sleep "$every_s"
    done
    rm -f "$state/told"
    echo "The Secrets are good: memcached may start."
    : >"$state/ready"
fi
while sleep "$every_s"; do
    now=$(written)
    [ "$now" = "$seen" ] && continue
    seen=$now
    problem=$(judge "$@")
    if [ -n "$problem" ]; then
        echo "The Secrets changed, and memcached keeps what it has: $problem"
    else
        for server in $(servers); do kill -HUP "$server"; done
        echo "The Secrets changed: memcached reloads them."
    fi
done
