// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
	"time"
	"unicode"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// Engine is what this package needs of the engine; *engine.Engine is one.
type Engine interface {
	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error)
	Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
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

// head is the first bytes of a stream.
type head struct {
	text []byte
	most int
	cut  bool
}

func (h *head) add(b []byte) {
	room := h.most - len(h.text)
	if len(b) > room {
		b, h.cut = b[:room], true
	}
	h.text = append(h.text, b...)
}

// last returns the last bytes of what is kept, for a message.
func (h *head) last() []byte {
	b := h.text
	return append([]byte(nil), b[max(0, len(b)-maxSaid):]...)
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
