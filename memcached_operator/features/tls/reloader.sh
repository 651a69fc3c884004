# Lets a memcached start once what its Secrets hold is good, and has it reload that when it changes.
#
#   sh reloader.sh TLS AUTH OPTION...
#
# TLS, AUTH: the names of the Secrets, "" for none. OPTION: memcached's own, by which the server uses them.
# memcached is the judge: one is started for a moment, which listens on a socket in a file. What the pod's status is to
# report, this ends with, once for each different problem, and goes on then: no crash loop.
# For any POSIX shell; besides that readlink, sleep, mkdir, mv, rm, cat and wc, which busybox and Debian have; and for a
# CA that has expired base64, od and date, without which none counts as expired.
set -u
LC_ALL=C # lengths are of bytes
mounted=/etc/memcached
state=/dev/shm/reloader # the pod's: it outlasts a container that ends, and is gone with the pod
processes=/proc
termination_log=/dev/termination-log
every_s=5
carriage=$(printf '\r') blanks=$(printf ' \t\r\f\v')

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

# What memcached takes without a word, and by which users are lost (authfile.c): it reads eight lines, 255 bytes at a time
# and with the line's end, ends a password at a carriage return, and the file at a NUL.
passwords() {
    number=0 bytes=0 wrong=
    while
        ends=1
        IFS= read -r line || { ends=0 && [ -n "$line" ]; }
    do
        number=$((number + 1)) bytes=$((bytes + ${#line} + ends)) length=${#line}
        line=${line%"$carriage"}
        user=${line%%:*}
        if [ "$number" -gt 8 ]; then
            wrong="there is a line $number: memcached takes at most 8"
        elif [ "$length" -gt 254 ]; then
            wrong="line $number has $length bytes: memcached takes at most 254"
        elif [ "$line" != "${line#*"$carriage"}" ]; then
            wrong="line $number has a carriage return in it, at which memcached ends the password"
        else
            case $line in [!:]*:?*) [ "$user" != "${user#* }" ] || continue ;; esac
            wrong="line $number must be user:password, without a space in the user"
        fi
        break
    done
    # A shell leaves NULs out of what it reads.
    size=$(wc -c <"$mounted/auth/password-file" 2>/dev/null)
    if [ -z "$wrong" ] && [ "$bytes" -ne "${size:-$bytes}" ]; then
        wrong="there is a NUL byte in it, at which memcached ends the file"
    fi
    [ -z "$wrong" ] && return
    echo "PasswordsInvalid: key password-file of the Secret $auth: $wrong"
    return 1
}

try() {
    rm -f "$state/socket"
    memcached -s "$state/socket" -m 8 -t 1 -c 64 "$@" >"$state/output" 2>&1 &
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
    failure="memcached does not start, and says nothing"
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in *[Aa]uthfile* | 'Error loading'*) failure=$line && break ;; ?*) failure=$line ;; esac
    done <"$state/output"
    case $failure in
        *[Aa]uthfile*) echo "PasswordsInvalid: key password-file of the Secret $auth: $failure" ;;
        *chain*) echo "CertificateInvalid: key tls.crt of the Secret $tls: $failure" ;;
        *'CA cert'*) echo "CertificateInvalid: key ca.crt of the Secret $tls: $failure" ;;
        *'the key'*) echo "CertificateInvalid: key tls.key of the Secret $tls: $failure" ;;
        *) [ -n "$tls" ] && echo "CertificateInvalid: $failure" || echo "PasswordsInvalid: $failure" ;;
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

# Judges what one write of the kubelet brought: of half a write something would seem to be missing.
judge_whole() {
    while
        seen=$(written)
        problem=$(judge "$@")
        [ "$(written)" != "$seen" ]
    do :; done
}

# Has each of these servers take up what the Secrets hold; fails where one cannot be signalled, and lives on.
hang_up() {
    for server in $1; do
        kill -HUP "$server" 2>/dev/null || [ ! -e "$processes/$server" ] || return 1
    done
}

# Each certificate of ca.crt, as one word: its content, in which blanks and line ends have no meaning (RFC 7468).
authorities() {
    set -f
    one= IFS=$blanks
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
            -----BEGIN*CERTIFICATE-----*) one=: ;;
            -----BEGIN*) one= ;; # a list of revoked ones, or a key
            -----END*) [ -z "$one" ] || printf '%s ' "${one#:}" && one= ;;
            *) for word in $line; do one=${one:+$one$word}; done ;; # a comment, where none began
        esac
    done <"$mounted/tls/ca.crt"
}

# Whether this certificate is no longer valid: a server that trusts it accepts no client by it (RFC 5280 6.1.3). What
# cannot be read counts as valid.
expired() {
    ends=$(not_after "$1" 2>/dev/null)
    now=$(date -u +%Y%m%d%H%M%S 2>/dev/null)
    [ -n "$ends" ] && [ -n "$now" ] && [ "$ends" -lt "$now" ]
}

# When a certificate ends to be valid, as YYYYMMDDHHMMSS (RFC 5280 4.1). What is malformed ends the subshell of this.
not_after() {
    set -- $(printf '%s' "$1" | base64 -d | od -An -v -t x1)
    # Into the certificate and what of it is signed; past version, serial number, algorithm and issuer; into the validity,
    # and past its begin.
    for step in into into version past past past into past; do
        [ "$step" != version ] || [ "$1" = a0 ] || continue # the first version has no number
        length=$((0x$2))
        shift 2
        if [ "$length" -gt 127 ]; then
            bytes=$((length - 128)) length=0
            while [ "$bytes" -gt 0 ]; do
                length=$((length * 256 + 0x$1)) bytes=$((bytes - 1))
                shift
            done
        fi
        [ "$step" = into ] || shift "$length"
    done
    case $1$2 in
        170d) case $3 in 3[0-4]) time=20 ;; *) time=19 ;; esac ;; # UTCTime: 50 and later is the last century
        180f) time= ;;
        *) return ;;
    esac
    shift 2
    while [ "$1" != 5a ]; do
        time=$time${1#3}
        shift
    done
    echo "$time"
}

# Whether these words have this one.
has() {
    case " $1 " in *" $2 "*) return 0 ;; esac
    return 1
}

# Writes a file of the state whole or not at all: the container may be killed at any time.
keep() {
    echo "$2" >"$state/$1.new" && mv "$state/$1.new" "$state/$1"
}

# Ends this container for the pod's status to have these words; "" where the reported problem is solved.
report() {
    [ "$1" = "$former" ] && return
    echo "$1" >"$state/reported"
    echo "$1" >"$termination_log"
    echo "${1:-The reported problem is solved.}"
    exit 1
}

mkdir -p "$state"
# What the container before this one ended with.
former=$(cat "$state/reported" 2>/dev/null)
rm -f "$state/reported"
# Where a server runs, only this container was started again: its pod is to stay ready.
[ -n "$(servers)" ] || rm -f "$state/ready" "$state/running" "$state/trusted"
seen=- listed= # no write is called so
case " $* " in *ssl_ca_cert=*) asks=1 ;; *) asks= ;; esac
if [ ! -e "$state/ready" ]; then
    while
        judge_whole "$@"
        [ -n "$problem" ]
    do
        report "$problem"
        sleep "$every_s"
    done
    listed=$([ -z "$asks" ] || authorities)
    case $former in AuthorityRemoved* | ReloadFailed*) ;; *) former= ;; esac # what servers wait for is over by this
    echo "The Secrets are good: memcached may start."
    : >"$state/ready"
fi
# memcached adds to the authorities that it trusts when it reloads, and never takes one away: of each server all that
# were there since its start are kept in mind.
running=$(cat "$state/running" 2>/dev/null)
trusted=$(cat "$state/trusted" 2>/dev/null)
due=
while sleep "$every_s"; do
    now=$(servers)
    if [ "$now" != "$running" ]; then
        running=$now trusted=$listed
    fi
    if [ "$(written)" != "$seen" ]; then
        now=$(servers)
        [ "$now" = "$running" ] || running=$now trusted=$listed # it may have started by what was there before
        judge_whole "$@"
        if [ -n "$problem" ]; then
            echo "The Secrets changed, and memcached keeps what it has: $problem"
        else
            due=1 listed=$([ -z "$asks" ] || authorities)
            for one in $listed; do
                has "$trusted" "$one" || trusted="$trusted $one"
            done
        fi
    fi
    [ -z "$problem" ] || continue
    # Before a server is signalled: whichever container comes later knows what it trusts, and never only half of it.
    keep trusted "$trusted"
    keep running "$running"
    if [ -n "$due" ] && [ -n "$running" ]; then
        if ! hang_up "$running"; then
            report "ReloadFailed: memcached keeps what the Secrets had before, as the container reloader may not signal \
it: both must run as the same user"
            continue
        fi
        due=
        echo "The Secrets changed: memcached reloads them."
    fi
    removed=
    for one in $trusted; do
        has "$listed" "$one" || expired "$one" || removed=1
    done
    report "${removed:+AuthorityRemoved: memcached trusts a CA that is no longer in ca.crt of the Secret $tls}"
done
