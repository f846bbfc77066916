// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strconv"

	"sandpit.dev/engine"
)

// reach is a server that a command asks.
type reach struct {
	a        *Address
	login    login
	ca       string
	insecure bool
	name     string // git's name of the remote
}

// answers is what git asks for a login. It reads one from the command's standard input, which it was left as
// descriptor 3: so it is in no argument, no variable and no file. That is a pipe, and the shell reads no
// byte of it more than it needs.
const answers = `!f() { test "$1" = get && IFS= read -r u <&3 && IFS= read -r p <&3 && printf 'username=%s\npassword=%s\n' "$u" "$p"; }; f`

const authorities = "SANDPIT_GIT_CA"

// proxied starts git with its login as descriptor 3. $1 is the address's scheme, $2 and $3 are keys of
// the configuration: the proxy is what the environment says, whatever the repository's configuration does.
const proxied = `exec 3<&0 </dev/null
case $1 in
https) p=${https_proxy:-${HTTPS_PROXY:-${all_proxy:-$ALL_PROXY}}} ;;
*) p=${http_proxy:-${all_proxy:-$ALL_PROXY}} ;;
esac
k=$2 r=$3
shift 3
set -- -c "$k=$p" -c "$r=$p" "$@"
`

// trusting adds authorities to those that git knows, for one command.
const trusting = `t=$(mktemp) || exit
trap 'rm -f "$t"' EXIT
{ cat "${GIT_SSL_CAINFO:-/etc/ssl/certs/ca-certificates.crt}"; printf '\n%s\n' "$` + authorities + `"; } >"$t" 2>/dev/null
GIT_SSL_CAINFO=$t
export GIT_SSL_CAINFO
unset ` + authorities + `
`

// apply has a request reach the server: git may use its transports alone, and tells the login to it and to no
// other, by a connection that no configuration of the repository diverts. before are git's options and args
// its command.
func (r *reach) apply(q *engine.ExecRequest, before, args []string) {
	q.Env["GIT_ALLOW_PROTOCOL"] = r.a.protocols()
	var script string
	var first, options []string
	if r.a.http() {
		at := "http." + r.a.Text
		if r.login != (login{}) {
			helper := "credential." + r.a.scheme + "://" + r.a.authority + ".helper="
			options = append(options,
				"-c", helper, "-c", helper+answers, // the first one takes other helpers out
				"-c", at+".curloptResolve=", "-c", at+".sslVerify="+strconv.FormatBool(!r.insecure))
			q.Stdin, q.Redact = r.login.input(), r.login.values()
			script, first = proxied, []string{r.a.scheme, at + ".proxy", "remote." + r.name + ".proxy"}
		} else if r.insecure {
			options = append(options, "-c", at+".sslVerify=false")
		}
		if r.ca != "" {
			q.Env[authorities] = r.ca
			script += trusting
		}
	}
	all := append(append(before, options...), args...)
	switch {
	case script == "":
		q.Argv = append([]string{"git"}, all...)
		return
	case r.ca != "":
		script += `git "$@"` // and the file is removed after
	default:
		script += `exec git "$@"`
	}
	q.Argv = append(append([]string{"sh", "-c", script, "git"}, first...), all...)
}
