// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// At says where in a sandbox git runs, and how.
type At struct {
	// Path is a directory of the repository, relative to the workspace; empty: the workspace.
	Path    string
	User    string        // "sandbox" or "root"; empty: sandbox
	Timeout time.Duration // of all of it; zero: DefaultTimeout
}

// job is what one verb does in a sandbox: commands that share a directory, a user and a time limit.
type job struct {
	s     *Service
	c     access.Caller
	ref   string
	at    At
	until time.Time
	doing string // in words, for errors
}

// begin checks who asks and where it is to run. Both are errors only after k's own.
func (s *Service) begin(k *check.Fields, c access.Caller, ref string, at At, doing string) (*job, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	most := s.engine.MostCommandTime()
	if at.Path != "" {
		k.Path("path", at.Path)
	}
	k.Timeout("timeout_seconds", at.Timeout, most)
	if err := k.Err(); err != nil {
		return nil, err
	}
	if at.Timeout == 0 {
		at.Timeout = min(DefaultTimeout, most)
	}
	return &job{s: s, c: c, ref: ref, at: at, until: time.Now().Add(at.Timeout), doing: doing}, nil
}

// command is one command of git's.
type command struct {
	args  []string
	stdin []byte // not with reach
	env   map[string]string
	reach *reach // the server that it asks, nil: none
	// hooks runs those of the repository, as for a person who types the command.
	hooks bool
	// tree: it needs a working tree. A bare repository that lies there may be part of a clone.
	tree bool
	// plain is told nothing, so that it reads what the files say.
	plain bool
	most  int // bytes of its output that are kept, zero: maxOutput
	sink  func(sandbox.Frame)
	// about is what doing says of it, "": that of the job.
	about string
}

// output is what a command printed on its standard output: the first bytes of it.
type output struct {
	text string
	cut  bool // there was more
}

// configuration is what every command is told, whatever the repository's configuration says: no program of
// it that only makes git faster or its output nicer is started, nothing goes on in the background, and
// submodules are left alone.
func (cmd *command) configuration() []string {
	if cmd.plain {
		return []string{"--no-pager"}
	}
	all := []string{"core.fsmonitor=false", "core.pager=cat", "core.alternateRefsCommand=true", "color.ui=false", "maintenance.auto=false", "gc.auto=0", "submodule.recurse=false", "fetch.recurseSubmodules=false", "log.showSignature=false"}
	if !cmd.hooks {
		all = append(all, "core.hooksPath=/dev/null")
	}
	if cmd.tree {
		all = append(all, "safe.bareRepository=explicit")
	}
	args := []string{"--no-pager", "--literal-pathspecs"}
	for _, c := range all {
		args = append(args, "-c", c)
	}
	return args
}

// environment is how git is to speak: in English, to nobody that it could ask.
func environment() map[string]string {
	return map[string]string{
		"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_PAGER": "cat",
		"GIT_OPTIONAL_LOCKS": "0", "GIT_TRACE_REDACT": "1", "GIT_MERGE_AUTOEDIT": "no", "LC_ALL": "C.UTF-8", "LANGUAGE": "",
	}
}

// run runs a command and returns what it prints. One that fails is an error whose cause is a *Failure.
func (j *job) run(ctx context.Context, cmd command) (output, error) {
	r := engine.ExecRequest{
		Cwd: j.at.Path, Env: environment(), User: j.at.User, Timeout: time.Until(j.until), Stdin: cmd.stdin, MaxStderr: 1 << 20, KillOnDisconnect: true,
	}
	if r.Timeout < time.Second {
		r.Timeout = time.Second // what is left when the last one took all
	}
	for name, value := range cmd.env {
		r.Env[name] = value
	}
	if r.Cwd == "" {
		r.Cwd = "." // not root's home
	}
	if cmd.reach != nil {
		cmd.hooks = cmd.hooks && cmd.reach.login == (login{})
		cmd.reach.apply(&r, cmd.configuration(), cmd.args)
	} else {
		r.Argv = append(append([]string{"git"}, cmd.configuration()...), cmd.args...)
	}
	most := cmd.most
	if most == 0 {
		most = maxOutput
	}
	r.MaxStdout = int64(most)
	began := time.Now()
	var stdout head
	var stderr tail
	stdout.most = most
	res, err := j.s.engine.Exec(ctx, j.c, j.ref, r, func(f sandbox.Frame) error {
		if f.Stream == sandbox.Stderr {
			stderr.add(f.Data)
		} else {
			stdout.add(f.Data)
		}
		if cmd.sink != nil {
			cmd.sink(f)
		}
		return nil
	})
	if e := fault.As(err); err != nil && e.Code == fault.Invalid && len(e.Fields) == 1 && e.Fields[0].Name == "cwd" {
		return output{}, j.told(meaning{ReasonNoRepository, fault.NotFound, "see whether path is a directory of a repository"}, "path: %s", e.Fields[0].Message)
	}
	out := output{string(stdout.text), stdout.cut || res.StdoutTruncated}
	if err != nil || res.ExitCode == 0 {
		return out, err
	}
	f := &Failure{ExitCode: res.ExitCode, Cause: res.Cause, Said: said(append(append(stdout.last(), '\n'), stderr...)), Began: began}
	if cmd.reach != nil {
		f.Host = cmd.reach.a.Host
	}
	doing := cmd.about
	if doing == "" {
		doing = j.doing
	}
	return out, j.failure(ctx, f, doing)
}

// A Failure is the cause of an error: a command of git's that ended with another exit code than 0.
type Failure struct {
	ExitCode int
	Cause    sandbox.Cause // where it did not end by itself
	Said     string        // what git said, in printable characters
	Began    time.Time
	Host     string // that it was to reach, "" for none
}

// failureOf returns the command that an error came from, nil: from none.
func failureOf(err error) *Failure {
	f, _ := errors.AsType[*Failure](err)
	return f
}

func (f *Failure) Error() string { return fmt.Sprintf("git ended with exit code %d", f.ExitCode) }

// how says in words how it ended, with what git said.
func (f *Failure) how() string {
	if f.Cause != sandbox.CauseNone {
		return fmt.Sprintf("git was ended (%s): %s", f.Cause, f.Said)
	}
	return fmt.Sprintf("git ended with exit code %d: %s", f.ExitCode, f.Said)
}

// failure returns the error of a command that failed: of the code and with the reason that git's words
// have, else of the code state.
func (j *job) failure(ctx context.Context, f *Failure, doing string) error {
	m := understand(f.Said)
	if f.ExitCode == 127 {
		m = findings[0].meaning
	}
	if m.reason == ReasonMissing {
		return fault.Wrap(m.code, f, "error %s: there is no git in this sandbox's image: %s", doing, f.Said).WithReason(m.reason).WithRemedy("%s", m.remedy)
	}
	e := fault.Wrap(fault.State, f, "error %s: %s", doing, f.how()).WithRemedy("see what git says")
	if f.Host != "" {
		e.Remedy = seeRemedy
	}
	switch {
	case f.Cause != sandbox.CauseNone && f.Host != "":
		e.Reason = ReasonUnreachable
	case f.Cause == sandbox.CauseNone && m != (meaning{}):
		e.Code, e.Reason, e.Remedy = m.code, m.reason, m.remedy
	}
	if why := j.s.blocked(ctx, j.c, j.ref, f); why != "" {
		e.Message += Refused + why
		e.Code, e.Reason = fault.State, ReasonUnreachable
		flag := "--allow-domain"
		if _, err := netip.ParseAddr(f.Host); err == nil {
			flag = "--allow-cidr"
		}
		_ = e.WithRemedy("have the sandbox reach it: sandpit network set %s restricted %s %s, with what it may reach already; or ask a person to, by POST /v1/sandboxes/%s/network/requests", j.ref, flag, shown(f.Host), j.ref)
	}
	return e
}

// told is an error that no command of git's has ended with.
func (j *job) told(m meaning, format string, args ...any) error {
	return fault.New(m.code, "error %s: %s", j.doing, fmt.Sprintf(format, args...)).WithReason(m.reason).WithRemedy("%s", m.remedy)
}

// head reads where a repository's HEAD is: the commit, and the branch unless that is detached. A repository
// without a commit has neither.
func (j *job) head(ctx context.Context) (commit, branch string, err error) {
	out, err := j.run(ctx, command{args: []string{"rev-parse", "HEAD", "--symbolic-full-name", "HEAD"}, about: "reading HEAD"})
	if fault.ReasonOf(err) == ReasonNoCommit {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	first, name, _ := strings.Cut(strings.TrimSpace(out.text), "\n")
	if fullID.MatchString(first) {
		commit = first
	}
	if short, ok := strings.CutPrefix(name, "refs/heads/"); ok && len(short) <= maxName && !notInBranch.MatchString(short) {
		branch = nameText(short)
	}
	return commit, branch, nil
}
