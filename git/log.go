// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// LogRequest asks for commits.
type LogRequest struct {
	At
	Revision string   // the newest of them; empty: HEAD
	Files    []string // only commits that changed one of them
	Limit    int      // zero: DefaultLog, at most MaxLog
	Skip     int
}

// Bounds of a log.
const (
	DefaultLog     = 20
	MaxLog         = 1000
	maxCommitText  = 64 << 10 // of a message that is shown, in bytes
	maxSkip        = 1_000_000
	maxCommitNames = 1000 // of a person, in bytes
)

// A Person made a commit.
type Person struct {
	Name  string
	Email string
	At    time.Time // zero where the commit's date is not one
}

// Commit is one commit.
type Commit struct {
	ID        string
	Parents   []string
	Author    Person
	Committer Person
	Message   string
}

// Log is commits, the newest first.
type Log struct {
	Commits []Commit
	More    bool // there are others after them
}

// Log returns commits.
func (s *Service) Log(ctx context.Context, c access.Caller, ref string, r LogRequest) (Log, error) {
	var k check.Fields
	checkRevision(&k, "revision", r.Revision)
	checkFiles(&k, "files", r.Files)
	if r.Limit < 0 || r.Limit > MaxLog {
		k.Bad("limit", "%d is outside 1 to %d", r.Limit, MaxLog)
	}
	if r.Skip < 0 || r.Skip > maxSkip {
		k.Bad("skip", "%d is outside 0 to %d", r.Skip, maxSkip)
	}
	j, err := s.begin(&k, c, ref, r.At, "reading the log")
	if err != nil {
		return Log{}, err
	}
	if r.Limit == 0 {
		r.Limit = DefaultLog
	}
	args := []string{
		"log", "-z", "--no-color", "--no-decorate", "--no-show-signature", "--no-notes", "--encoding=UTF-8", "--no-patch", "--no-ext-diff", "--no-textconv",
		"--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B", "--max-count=" + strconv.Itoa(r.Limit+1), "--skip=" + strconv.Itoa(r.Skip), "--end-of-options",
	}
	if r.Revision != "" {
		args = append(args, r.Revision)
	} else {
		args = append(args, "HEAD")
	}
	out, err := j.run(ctx, command{args: append(append(args, "--"), r.Files...), most: maxBytes})
	if r.Revision == "" && fault.ReasonOf(err) == ReasonNoCommit {
		return Log{}, nil // there is none yet
	}
	if err != nil {
		return Log{}, err
	}
	l := parseLog(out.text, out.cut)
	if len(l.Commits) > r.Limit {
		l.Commits, l.More = l.Commits[:r.Limit], true
	}
	return l, nil
}

const logFields = 9

// parseLog reads commits of nine fields. Each begins with an id: where a commit says more than git lets it, what
// is no id is passed over.
func parseLog(text string, cut bool) Log {
	l := Log{More: cut}
	f := strings.Split(text, "\x00")
	if n := len(f); n > 0 { // what follows the last end is cut off
		f = f[:n-1]
	}
	for len(f) >= logFields {
		if !fullID.MatchString(f[0]) {
			f = f[1:]
			continue
		}
		c := Commit{
			ID: f[0], Author: Person{personText(f[2]), personText(f[3]), date(f[4])}, Committer: Person{personText(f[5]), personText(f[6]), date(f[7])},
			Message: sandbox.Clip(strings.TrimRight(strings.ToValidUTF8(f[8], "\ufffd"), "\n"), maxCommitText),
		}
		for p := range strings.FieldsSeq(f[1]) {
			if fullID.MatchString(p) {
				c.Parents = append(c.Parents, p)
			}
		}
		l.Commits, f = append(l.Commits, c), f[logFields:]
	}
	return l
}

func personText(s string) string {
	return sandbox.Clip(printable(strings.ToValidUTF8(s, "\ufffd")), maxCommitNames)
}
