// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

// reach is a server that a command asks.
type reach struct {
	a        *Address
	login    login
	ca       string
	insecure bool
	name     string   // git's name of the remote
	silenced []string // keys of the configuration's helpers
	user     string   // within the address as the configuration has it: keys with it go before those without
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

// key is the address as it stands in the most exact keys of git's configuration.
func (r *reach) key() string {
	u, err := url.Parse(r.a.Text)
	if r.user == "" || err != nil {
		return r.a.Text
	}
	u.User = url.User(r.user)
	return u.String()
}

// silence finds the helpers that the configuration names: one for a longer address goes before ours, and would be started with the
// login within its reach.
func (j *job) silence(ctx context.Context, r *reach) error {
	if r.login == (login{}) || !r.a.http() {
		return nil
	}
	out, err := j.run(ctx, command{args: []string{"config", "--null", "--name-only", "--get-regexp", `^credential\..*helper$`}, plain: true, most: maxBytes, about: "reading the configuration"})
	if f := failureOf(err); f != nil && f.ExitCode == 1 {
		return nil // there is none
	}
	if err != nil {
		return err
	}
	for key := range strings.SplitSeq(strings.TrimSuffix(out.text, "\x00"), "\x00") {
		if out.cut || len(r.silenced) == maxHelpers || strings.ContainsAny(key, "=\n") || !utf8.ValidString(key) {
			return j.told(meaning{"", fault.State, "remove it from the configuration; nothing was sent"}, "the configuration has a credential helper that cannot be left out, %s", shown(nameText(key)))
		}
		r.silenced = append(r.silenced, key)
	}
	return nil
}

const maxHelpers = 100

// apply has a request reach the server: git may use its transports alone, and tells the login to it and to no
// other, by a connection that no configuration of the repository diverts. before are git's options and args
// its command.
func (r *reach) apply(q *engine.ExecRequest, before, args []string) {
	q.Env["GIT_ALLOW_PROTOCOL"] = r.a.protocols()
	var script string
	var first, options []string
	if r.a.http() {
		at := "http." + r.key()
		if r.login != (login{}) {
			helper := "credential." + r.a.scheme + "://" + r.a.authority + ".helper="
			for _, key := range r.silenced {
				options = append(options, "-c", key+"=")
			}
			exact := "credential." + r.key() + ".helper="
			options = append(options,
				"-c", exact, "-c", exact+answers,
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
