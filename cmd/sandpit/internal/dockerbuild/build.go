// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// Flags are what the command line says of a build.
type Flags struct {
	File, Tag, Target string
	Args              []string // NAME=VALUE, or NAME for the value of this program's environment
	NoCache           bool
}

// Builder builds Dockerfiles.
type Builder struct {
	Client *client.Client
	Stdin  io.Reader
	Log    io.Writer // gets the steps and what they write
	Getenv func(string) (string, bool)
}

// Build builds the Dockerfile of a directory; "-" is an archive of one from the standard input.
func (b *Builder) Build(ctx context.Context, dir string, f Flags) (*v1.Image, error) {
	r := client.BuildDockerfile{Name: f.Tag, Target: f.Target, NoCache: f.NoCache, Args: make(map[string]string)}
	for _, a := range f.Args {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			value, ok = b.Getenv(name)
		}
		if name == "" || !ok {
			return nil, fault.InvalidField("build-arg", "%q is neither NAME=VALUE nor a variable that is set here", a)
		}
		r.Args[name] = value
	}
	log := &lines{to: b.Log}
	r.Step = func(s v1.BuildStep) error {
		log.flush()
		switch {
		case s.Step == 0:
			log.say("# " + s.Text)
		case s.Kept:
			log.say(fmt.Sprintf("# step %d of %d, line %d, is kept: %s", s.Step, s.Steps, s.Line, s.Text))
		default:
			log.say(fmt.Sprintf("# step %d of %d, line %d: %s", s.Step, s.Steps, s.Line, s.Text))
		}
		return nil
	}
	r.Output = func(data []byte) error { log.write(data); return nil }
	defer log.flush()
	if dir == stdin {
		r.Dockerfile = f.File
		if f.File == stdin {
			return nil, fault.New(fault.Invalid, "the directory and the Dockerfile cannot both be the standard input")
		}
		return b.Client.BuildDockerfile(ctx, b.Stdin, r)
	}
	d, err := Open(dir, f.File, b.Stdin)
	if err != nil {
		return nil, err
	}
	r.Dockerfile = d.Dockerfile
	from, to := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := d.Write(ctx, to, func(name string) {
			log.say("# left out, since it is neither a file nor a directory nor a link: " + name)
		})
		_ = to.CloseWithError(err)
		packed <- err
	}()
	img, err := b.Client.BuildDockerfile(ctx, from, r)
	_ = from.CloseWithError(errSent)
	if perr := <-packed; perr != nil && !errors.Is(perr, errSent) && err != nil && ctx.Err() == nil {
		return nil, perr // why the server got no whole archive
	}
	return img, err
}

var errSent = errors.New("the server takes no more")

// lines writes text line by line, without what could move a terminal's cursor.
type lines struct {
	mu   sync.Mutex
	to   io.Writer
	part []byte
}

// maxLine bounds a line that is held.
const maxLine = 16 << 10

func (l *lines) write(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			if l.part = append(l.part, p...); len(l.part) > maxLine {
				l.flush()
			}
			return
		}
		l.part = append(l.part, p[:i]...)
		l.flush()
		p = p[i+1:]
	}
}

func (l *lines) flush() {
	if len(l.part) > 0 {
		l.say(string(l.part))
		l.part = l.part[:0]
	}
}

func (l *lines) say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.to, output.Printable(line))
}
