// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/template"
)

// Bounds of what is kept of a build's output, and how long who follows it waits before looking for more.
const (
	maxLog   = 4 << 20
	logPause = 100 * time.Millisecond
)

// buildLog is the file with the output of one build, of which the first bytes are kept. One that is nil keeps nothing.
type buildLog struct {
	file *os.File
	left int
}

func logName(id string) string { return id + ".log" }

// openLog begins the log of a version. One that cannot be written ends no build.
func (s *Service) openLog(id string) *buildLog {
	if s.o.Logs == "" {
		return nil
	}
	f, err := s.logFile(id, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		s.o.Logger.Warn("the log of a template's build cannot be kept", "template", id, "error", err)
		return nil
	}
	return &buildLog{file: f, left: maxLog}
}

func (s *Service) logFile(id string, flags int) (*os.File, error) {
	if flags&os.O_CREATE != 0 {
		if err := os.MkdirAll(s.o.Logs, 0o700); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(s.o.Logs)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(logName(id), flags, 0o600)
}

func (s *Service) removeLog(id string) {
	if s.o.Logs == "" {
		return
	}
	root, err := os.OpenRoot(s.o.Logs)
	if err == nil {
		defer root.Close()
		err = root.Remove(logName(id))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Logger.Warn("the log of a template's build cannot be removed", "template", id, "error", err)
	}
}

func (l *buildLog) Write(p []byte) (int, error) {
	if l == nil || l.left <= 0 {
		return len(p), nil
	}
	keep := p[:min(len(p), l.left)]
	if l.left -= len(keep); l.left == 0 {
		keep = append(keep[:len(keep):len(keep)], "\nthe rest is not kept\n"...)
	}
	if _, err := l.file.Write(keep); err != nil {
		l.left = 0
	}
	return len(p), nil
}

// say writes a line of ours.
func (l *buildLog) say(format string, args ...any) {
	_, _ = l.Write([]byte("# " + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n# ") + "\n"))
}

func (l *buildLog) Close() {
	if l != nil {
		_ = l.file.Close()
	}
}

// Log writes what the build of a version has written: with follow also what it writes until it has ended. flush, if not nil, is
// called when there is no more for now. Where no log is kept it is fault.NotFound. It names the mirrors of the host's package
// tools, so that it is for administrators, as that of an image is.
func (s *Service) Log(ctx context.Context, c access.Caller, ref string, w io.Writer, follow bool, flush func() error) error {
	if err := c.Require(access.Admin); err != nil {
		return err
	}
	t, err := s.Get(ctx, c, ref)
	if err != nil {
		return err
	}
	bound, leave, err := s.engine.Enter(ctx, c, access.Admin)
	if err != nil {
		return err
	}
	defer leave()
	none := fault.New(fault.NotFound, "there is no log of a build of the template %s", t.Ref()).WithRemedy("what is made of an image that is here is not built")
	if s.o.Logs == "" || t.Project != c.Project {
		return none
	}
	f, err := s.logFile(t.ID, os.O_RDONLY)
	for errors.Is(err, fs.ErrNotExist) && follow && t.Status == template.Building && s.goes(t.ID) { // it is about to begin
		if err := pause(bound); err != nil {
			return err
		}
		f, err = s.logFile(t.ID, os.O_RDONLY)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return none
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the log of the template %s cannot be read", t.Ref())
	}
	defer f.Close()
	for {
		goes := s.goes(t.ID) // before the rest is read, so that nothing is missed
		if _, err := io.Copy(w, io.LimitReader(f, 2*maxLog)); err != nil {
			return err
		}
		if flush != nil {
			if err := flush(); err != nil {
				return err
			}
		}
		if !follow || !goes {
			return nil
		}
		if err := pause(bound); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(logPause):
		return nil
	}
}

// goes reports whether a version is being built here, and that is not broken off.
func (s *Service) goes(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.builds[id]
	return b != nil && b.broken.Err() == nil
}
