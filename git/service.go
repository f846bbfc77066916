// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"
	"unicode"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Engine is what this package needs of the engine; *engine.Engine is one.
type Engine interface {
	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error)
	NetworkLog(ctx context.Context, c access.Caller, ref string) (engine.NetworkLog, error)
	MostCommandTime() time.Duration
}

// Files removes what a command that failed has left; *files.Service does.
type Files interface {
	RemoveFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.RemoveFileOptions) error
}

// Service is git's verbs. All its methods are safe for concurrent use.
type Service struct {
	engine Engine
	files  Files
}

// New returns the verbs over an engine.
func New(e Engine, f Files) *Service { return &Service{e, f} }

const (
	// DefaultTimeout ends a command of git's for which no time is given.
	DefaultTimeout = 30 * time.Minute
	// Refused stands in the message of an error before why the network's policy refused the server.
	Refused = "\nnetwork blocked: "
	// maxSaid bounds how much of what git says is shown, in bytes.
	maxSaid   = 2000
	maxOutput = 64 << 10
)

// A Failure is the cause of an error: a command of git's that ended with another exit code than 0.
type Failure struct {
	ExitCode int
	Cause    sandbox.Cause // where it did not end by itself
	Said     string        // what git said, in printable characters
	Began    time.Time
	Host     string // that it was to reach, "" for none
}

func (f *Failure) Error() string { return fmt.Sprintf("git ended with exit code %d", f.ExitCode) }

// how says in words how it ended, with what git said.
func (f *Failure) how() string {
	if f.Cause != sandbox.CauseNone {
		return fmt.Sprintf("git was ended (%s): %s", f.Cause, f.Said)
	}
	return fmt.Sprintf("git ended with exit code %d: %s", f.ExitCode, f.Said)
}

// command is one command of git's.
type command struct {
	args  []string
	dir   string // "": the workspace
	login login
	a     *Address // that it is to reach, nil for none
	time  time.Duration
	sink  func(sandbox.Frame)
}

// run runs a command and returns what it prints. One that fails is an error of the code state, whose
// cause is a *Failure; doing says what it was for.
func (s *Service) run(ctx context.Context, c access.Caller, ref string, cmd command, doing string) (string, error) {
	env := map[string]string{
		"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", // nobody is there to be asked
		"GIT_OPTIONAL_LOCKS": "0",
	}
	argv := []string{"git"}
	if cmd.a != nil {
		env["GIT_ALLOW_PROTOCOL"] = cmd.a.protocols()
		argv = append(argv, cmd.login.options(cmd.a, env)...)
	}
	if cmd.time == 0 {
		cmd.time = min(DefaultTimeout, s.engine.MostCommandTime())
	}
	began := time.Now()
	var stdout, stderr tail
	res, err := s.engine.Exec(ctx, c, ref, engine.ExecRequest{
		Argv: append(argv, cmd.args...), Cwd: cmd.dir, Env: env, Timeout: cmd.time, Redact: cmd.login.values(),
		MaxStdout: maxOutput, MaxStderr: 1 << 20, KillOnDisconnect: true,
	}, func(f sandbox.Frame) error {
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
	if err != nil || res.ExitCode == 0 {
		return string(stdout), err
	}
	f := &Failure{ExitCode: res.ExitCode, Cause: res.Cause, Said: said(stderr), Began: began}
	if res.ExitCode == 127 || strings.Contains(f.Said, "executable file not found") {
		return "", fault.Wrap(fault.State, f, "error %s: there is no git in this sandbox's image: %s", doing, f.Said).
			WithRemedy("install it, or create the sandbox from an image that has it")
	}
	if cmd.a != nil {
		f.Host = cmd.a.Host
	}
	e := fault.Wrap(fault.State, f, "error %s: %s", doing, f.how()).
		WithRemedy("see what git says; path names another directory, and a sandbox reaches what its network allows")
	if strings.Contains(f.Said, "already exists and is not an empty directory") {
		e.Code = fault.Exists
	}
	if why := s.blocked(ctx, c, ref, f); why != "" {
		e.Message += Refused + why
		flag := "--allow-domain"
		if _, err := netip.ParseAddr(f.Host); err == nil {
			flag = "--allow-cidr"
		}
		_ = e.WithRemedy("have the sandbox reach it: sandpit network set %s restricted %s %s, with what it may reach already; or ask a person to, by POST /v1/sandboxes/%s/network/requests", ref, flag, shown(f.Host), ref)
	}
	return "", e
}

// unreached is how git says that it found no network.
var unreached = regexp.MustCompile(`(?i)could not resolve host|name resolution|name or service not known|no such host|unreachable|(failed|unable|could not) (to )?connect|connection (refused|timed out|reset)`)

// blocked returns why the network's policy had a command fail, "" if it had not.
func (s *Service) blocked(ctx context.Context, c access.Caller, ref string, f *Failure) string {
	if ip, err := netip.ParseAddr(f.Host); f.Host == "" || f.Host == "localhost" || err == nil && ip.IsLoopback() {
		return "" // it is inside
	}
	log, err := s.engine.NetworkLog(ctx, c, ref)
	if err != nil {
		return "" // what git says has to do
	}
	if log.Policy.Mode == sandbox.NetworkOff || log.Policy.Mode == "" {
		if !unreached.MatchString(f.Said) {
			return ""
		}
		return shown(f.Host) + " cannot be reached: this sandbox has no network"
	}
	for _, x := range log.Entries {
		if x.Reason != "" && !x.Learned && !x.Last.Before(f.Began) {
			return printable(sandbox.Clip(x.Explain(), 600))
		}
	}
	return ""
}

// tail is the last bytes of a stream.
type tail []byte

func (t *tail) add(b []byte) {
	*t = append(*t, b...)
	if n := len(*t) - maxOutput; n > 0 {
		*t = append((*t)[:0], (*t)[n:]...)
	}
}

// said makes what git prints fit for a message: the last lines, as one in printable characters.
func said(b []byte) string {
	lines := strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' || r == '\r' })
	var keep []string
	size := 0
	for i := len(lines) - 1; i >= 0 && size < maxSaid; i-- {
		line := strings.TrimSpace(printable(strings.ToValidUTF8(lines[i], "�")))
		if line == "" || strings.HasPrefix(line, "Cloning into ") {
			continue
		}
		line = sandbox.Clip(line, maxSaid)
		size += len(line)
		keep = append([]string{line}, keep...)
	}
	if len(keep) == 0 {
		return "it said nothing"
	}
	return strings.Join(keep, "\n")
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
