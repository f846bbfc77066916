// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"io"
	"path"
	"strconv"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// maxAccounts bounds the files of accounts that are read of an image, in bytes.
const maxAccounts = 1 << 20

// maxID is the highest user or group that a sandbox has.
const maxID = 65535

// sandboxID is the number of the sandbox's own user.
const sandboxID = 1000

// account is who a RUN is done as.
type account struct {
	as     string            // of a sandbox's two users
	prefix []string          // words of a program that becomes another user
	env    map[string]string // of that user
}

// account returns who USER names: the sandbox's root, its own user, or another account of the image, which its own setpriv
// becomes.
func (b *fileBuild) account(ctx context.Context, st *stage, user string) (account, error) {
	if user == "" || user == "root" || user == "0" || user == "0:0" || user == "root:root" {
		return account{as: sandbox.UserRoot}, nil
	}
	client, release, err := b.s.engine.Connect(ctx, caller(), access.SandboxesWrite, string(st.box), "a build")
	if err != nil {
		return account{}, err
	}
	defer release()
	who, err := idsOf(ctx, client, user, 0)
	if err != nil {
		return account{}, err
	}
	switch {
	case who.uid == 0 && who.gid == 0:
		return account{as: sandbox.UserRoot}, nil
	case who.uid == sandboxID && who.gid == sandboxID:
		return account{as: sandbox.UserSandbox}, nil
	}
	program, err := setpriv(ctx, client)
	if err != nil {
		return account{}, err
	}
	if program == "" {
		return account{}, fault.New(fault.Unsupported, "USER %s is number %d of the image, and a step runs as root or as number %d, or as others by setpriv, which the image lacks", sandbox.Clip(user, 40), who.uid, sandboxID).
			WithRemedy("install util-linux before it, give the account the number %d, or put USER behind the last RUN", sandboxID)
	}
	out := account{as: sandbox.UserRoot, prefix: []string{program, "--reuid=" + strconv.Itoa(who.uid), "--regid=" + strconv.Itoa(who.gid), "--clear-groups", "--"}, env: map[string]string{"HOME": "/"}}
	if who.name != "" {
		out.prefix[3] = "--init-groups"
		out.env = map[string]string{"HOME": who.home}
	}
	return out, nil
}

// setpriv returns where util-linux's program is in the image; "": it is not.
func setpriv(ctx context.Context, c *agent.Client) (string, error) {
	for _, at := range []string{"/usr/bin/setpriv", "/bin/setpriv", "/usr/sbin/setpriv"} {
		fi, err := c.Stat(ctx, at, sandbox.UserRoot)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if fi.Type == sandbox.RegularFile { // busybox's is a link, and knows no users
			return at, nil
		}
	}
	return "", nil
}

// ids are a user and a group of an image.
type ids struct {
	uid, gid   int
	name, home string // of the user, where the image lists it
}

// idsOf returns what USER[:GROUP] means in the image. A number that the image does not list has the group lone, or below 0
// that of its own number.
func idsOf(ctx context.Context, c *agent.Client, text string, lone int) (ids, error) {
	user, group, grouped := strings.Cut(text, ":")
	users, err := lines(ctx, c, "/etc/passwd", 7)
	if err != nil {
		return ids{}, err
	}
	n, numeric, err := number(user)
	if err != nil {
		return ids{}, err
	}
	out := ids{uid: n, gid: lone}
	if lone < 0 {
		out.gid = n
	}
	found := false
	for _, f := range users {
		uid, uerr := strconv.Atoi(f[2])
		gid, gerr := strconv.Atoi(f[3])
		if uerr != nil || gerr != nil || uid < 0 || uid > maxID || gid < 0 || gid > maxID || (f[0] != user || user == "") && (!numeric || uid != n) {
			continue
		}
		out.uid, out.name, out.home, found = uid, f[0], f[5], true
		if !numeric || lone >= 0 {
			out.gid = gid
		}
		break
	}
	if !found && !numeric {
		return ids{}, fault.New(fault.Invalid, "the image has no user %q", sandbox.Clip(user, 40)).WithRemedy("make it before, as by: RUN useradd --create-home --uid 1001 NAME")
	}
	if !grouped {
		return out, nil
	}
	if n, numeric, err = number(group); err != nil || numeric {
		out.gid = n
		return out, err
	}
	groups, err := lines(ctx, c, "/etc/group", 3)
	if err != nil {
		return ids{}, err
	}
	for _, f := range groups {
		if gid, err := strconv.Atoi(f[2]); err == nil && gid >= 0 && gid <= maxID && f[0] == group {
			out.gid = gid
			return out, nil
		}
	}
	return ids{}, fault.New(fault.Invalid, "the image has no group %q", sandbox.Clip(group, 40)).WithRemedy("make it before, as by: RUN groupadd NAME")
}

// number reads a text that is a number of a user or a group, if it is one.
func number(text string) (n int, is bool, err error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false, nil
	}
	if n, err = strconv.Atoi(text); err != nil || n > maxID {
		return 0, true, fault.New(fault.Invalid, "%s is a user or group above %d, which a sandbox does not have", sandbox.Clip(text, 20), maxID)
	}
	return n, true, nil
}

// lines returns the fields of a list of accounts, which the image wrote; none where it has no such file.
func lines(ctx context.Context, c *agent.Client, name string, fields int) ([][]string, error) {
	fi, r, err := c.ReadFile(ctx, name, sandbox.ReadFileOptions{User: sandbox.UserRoot, Length: maxAccounts})
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if fi.Size > maxAccounts {
		return nil, fault.New(fault.Invalid, "%s of the image has more than %d bytes", path.Base(name), maxAccounts)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxAccounts))
	if err != nil {
		return nil, err
	}
	var all [][]string
	for line := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Split(line, ":"); len(f) >= fields {
			all = append(all, f)
		}
	}
	return all, nil
}
