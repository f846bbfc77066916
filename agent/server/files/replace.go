// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Replace replaces text in files, one after the other. Each is replaced as a whole, as with a file that is
// written, or stays as it was; what became of it is told of each.
func (s *Service) Replace(ctx context.Context, c *call.Conn, req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return err
	}
	r, err := newReplacer(req.Replace)
	if err != nil {
		return err
	}
	end, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := c.Send(wire.Reply, struct{}{}); err != nil {
		return err
	}
	until := time.Now().Add(wire.MaxReplaceSeconds * time.Second)
	for _, name := range req.Replace.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		one := wire.Replaced{Path: name}
		if time.Now().After(until) {
			err = fault.New(fault.Timeout, "replacing in the files before it took %d s, and this one was left alone", wire.MaxReplaceSeconds).
				WithRemedy("call again with the files that are left")
		} else {
			one.Count, err = s.replaceIn(v, name, r)
		}
		if err != nil {
			e := fault.As(err)
			one.Count, one.Error = 0, &wire.Error{Code: string(e.Code), Message: message.Clip(e.Message, wire.MaxReplaceMessage), Remedy: message.Clip(e.Remedy, wire.MaxReplaceMessage)}
		}
		if err := c.Send(wire.Item, []wire.Replaced{one}); err != nil {
			return err
		}
	}
	_, err = c.Write(wire.Append(nil, wire.Done, nil))
	return err
}

// replacer is what is replaced by what.
type replacer struct {
	find    *regexp.Regexp
	literal []byte // not nil: this, and no expression
	with    []byte
	cost    int // of the expression
	groups  int // how often the replacement stands for what was found
}

// newReplacer checks what is asked for.
func newReplacer(r *wire.Replace) (*replacer, error) {
	switch {
	case r == nil:
		return nil, fault.New(fault.Malformed, "the call does not say what to replace")
	case len(r.Files) == 0 || len(r.Files) > wire.MaxReplaceFiles:
		return nil, fault.InvalidField("files", "has %d paths; 1 to %d are replaced in at a time", len(r.Files), wire.MaxReplaceFiles)
	case len(r.Replacement) > wire.MaxReplacement:
		return nil, fault.InvalidField("replacement", "has %d bytes, more than %d", len(r.Replacement), wire.MaxReplacement)
	case r.Pattern == "":
		return nil, fault.InvalidField("pattern", "is empty; it would be found between all characters")
	case !r.Regexp && len(r.Pattern) > wire.MaxReplacement:
		return nil, fault.InvalidField("pattern", "has %d bytes, more than %d", len(r.Pattern), wire.MaxReplacement)
	}
	out := &replacer{with: []byte(r.Replacement)}
	if !r.Regexp && !r.Fold {
		out.literal = []byte(r.Pattern)
		return out, nil
	}
	expr := r.Pattern
	if !r.Regexp {
		if expr = regexp.QuoteMeta(expr); !utf8.ValidString(r.Pattern) {
			return nil, fault.InvalidField("pattern", "is not valid UTF-8")
		}
	}
	p, err := newPattern(expr, r.Fold)
	if err != nil {
		return nil, err
	}
	if p.re.MatchString("") {
		// It is found between all characters of any file; that is a mistake as a rule, and a large one.
		return nil, fault.InvalidField("pattern", "%q is found where nothing stands", message.Clip(r.Pattern, 80)).
			WithRemedy("use + in place of *, or say what has to stand there")
	}
	out.find, out.cost = p.re, p.cost
	if !r.Regexp {
		out.with = []byte(strings.ReplaceAll(r.Replacement, "$", "$$"))
	}
	out.groups = bytes.Count(out.with, []byte("$")) - 2*bytes.Count(out.with, []byte("$$"))
	return out, nil
}

// replace returns a text with all that is found replaced, and how often it is. Its time and its memory are
// bounded before they are spent: nothing ends one match early.
func (r *replacer) replace(text []byte) ([]byte, int64, error) {
	tooLarge := func(what string) error {
		return fault.New(fault.TooLarge, "%s", what).WithRemedy("make the file, the pattern or the replacement smaller")
	}
	if r.literal != nil {
		n := bytes.Count(text, r.literal)
		if len(text)+n*(len(r.with)-len(r.literal)) > wire.MaxReplaceFile {
			return nil, 0, tooLarge("the file would have more than 16 MiB")
		}
		return bytes.ReplaceAll(text, r.literal, r.with), int64(n), nil
	}
	if len(text)*max(1, r.cost) > wire.MaxReplaceWork {
		return nil, 0, tooLarge("the file is too large for so large a pattern")
	}
	n, found, ended := r.count(text)
	switch {
	case !ended:
		return nil, 0, tooLarge("the pattern takes too long in so large a file")
	case n == 0:
		return text, 0, nil
	}
	// Each group is at most the whole match.
	if len(text)-found+n*len(r.with)+max(0, r.groups)*found > wire.MaxReplaceFile {
		return nil, 0, tooLarge("the file could have more than 16 MiB")
	}
	return r.find.ReplaceAll(text, r.with), int64(n), nil
}

// slowReplace is how long what is found in a file is looked for. One match takes linear time; many, each of which looks
// at all that is left, do not.
const slowReplace = 5 * time.Second

// count counts what is found, and its bytes. ended is false where that took too long.
func (r *replacer) count(text []byte) (n, found int, ended bool) {
	type late struct{}
	defer func() {
		if p := recover(); p != nil {
			if _, is := p.(late); !is {
				panic(p)
			}
		}
	}()
	until := time.Now().Add(slowReplace)
	r.find.ReplaceAllFunc(text, func(match []byte) []byte {
		n, found = n+1, found+len(match)
		if time.Now().After(until) {
			panic(late{}) // nothing else ends it
		}
		return nil
	})
	return n, found, true
}

// replaceIn replaces in one file.
func (s *Service) replaceIn(v view.View, name string, r *replacer) (int64, error) {
	p, err := s.Absolute("files", name)
	if err != nil {
		return 0, err
	}
	var fd int
	var st unix.Stat_t
	v.Do(func() { fd, st, err = s.openRegular(p, unix.O_RDONLY) })
	if err != nil {
		return 0, fileFault(v, "replace in", p, err)
	}
	defer unix.Close(fd)
	if st.Size > wire.MaxReplaceFile {
		return 0, fault.New(fault.TooLarge, "%q has %d bytes, more than the %d in which text is replaced", message.Clip(shown(p), 200), st.Size, wire.MaxReplaceFile).
			WithRemedy("run sed in the sandbox")
	}
	text, err := io.ReadAll(io.NewSectionReader(descriptor.File(fd), 0, wire.MaxReplaceFile+1))
	if err != nil {
		return 0, fileFault(v, "replace in", p, err)
	}
	if len(text) > wire.MaxReplaceFile {
		return 0, fault.New(fault.Conflict, "%q grows all the time", message.Clip(shown(p), 200)).WithRemedy("try again")
	}
	text, n, err := r.replace(text)
	if err != nil || n == 0 {
		return 0, err
	}
	return n, fileFault(v, "replace in", p, s.overwrite(v, p, &st, text))
}

// overwrite gives a file another content, whole or not at all. The file is the one that was read, as it was then.
func (s *Service) overwrite(v view.View, p string, read *unix.Stat_t, text []byte) error {
	var u *upload
	var err error
	v.Do(func() { u, err = s.beginUpload(v, p, &wire.Request{Size: int64(len(text))}) })
	if err != nil {
		return err
	}
	defer u.close()
	for b := text; len(b) > 0 && err == nil; {
		var n int
		if n, err = unix.Write(u.fd, b); errors.Is(err, unix.EINTR) {
			err = nil
			continue
		}
		b = b[max(0, n):]
	}
	u.still = func() error {
		var now unix.Stat_t
		err := unix.Fstatat(u.dir, u.name, &now, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && (now.Dev != read.Dev || now.Ino != read.Ino || now.Size != read.Size || now.Mtim != read.Mtim) {
			err = fault.New(fault.Conflict, "%q was changed meanwhile, and is as that left it", message.Clip(shown(p), 200)).WithRemedy("try again")
		}
		return err
	}
	v.Do(func() {
		if err != nil {
			u.discard()
			return
		}
		_, err = u.commit()
	})
	if err == nil {
		s.syncer.add(u.written)
		u.written = -1
	}
	return err
}
