// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/transfer"
	"sandpit.dev/fault"
)

// source is what is copied into a sandbox.
type source struct {
	endpoint
	dir bool
	as  string          // its name in the archive
	out *client.Archive // of one in a sandbox
}

// upload copies files and trees, of this machine or of sandboxes, into a sandbox.
func (t *copier) upload(ctx context.Context, from []endpoint, to endpoint) error {
	into, err := t.isDir(ctx, to)
	if err != nil {
		return err
	}
	if len(from) > 1 && !into {
		return fault.New(fault.NotFound, "%s is not a directory in the sandbox, as several sources need one", to.path).
			WithRemedy("make it: sandpit exec %s mkdir -p %s", to.ref, to.path)
	}
	if from[0].path == "-" && !from[0].remote() {
		if into {
			sum, err := t.cl.UnpackFiles(ctx, to.ref, to.path, t.copy.Reader(t.a.Stdin, "-", -1), t.unpackOptions())
			return t.made(sum, err)
		}
		return t.cl.WriteFile(ctx, to.ref, to.path, t.a.Stdin, client.WriteOptions{User: t.user, Sync: t.sync})
	}
	all := make([]source, 0, len(from))
	for _, e := range from {
		s := source{endpoint: e}
		if !e.remote() {
			info, err := local(e.path)
			if err != nil {
				return err
			}
			s.dir = info.IsDir()
		} else if len(all) == 0 { // others wait for their turn
			if s.out, err = t.open(ctx, e); err != nil {
				return err
			}
			defer s.out.Close()
			s.dir = s.out.Type == "dir"
		}
		if s.as, err = s.name(); err != nil {
			return err
		}
		all = append(all, s)
	}
	dir := to.path
	if one := &all[0]; !into && !strings.HasSuffix(dir, "/") {
		if one.dir {
			one.as = "."
		} else if dir, one.as = path.Split(path.Clean(dir)); dir == "" {
			dir = "."
		}
	}
	return t.send(ctx, all, endpoint{to.ref, dir})
}

// replace copies one file into a sandbox on a condition: its bytes and permissions.
func (t *copier) replace(ctx context.Context, from, to endpoint, o client.WriteOptions) error {
	into, err := t.isDir(ctx, to)
	if err != nil {
		return err
	}
	if from.path == "-" {
		return t.cl.WriteFile(ctx, to.ref, to.path, t.a.Stdin, o)
	}
	info, err := local(from.path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fault.New(fault.Invalid, "%s is no regular file; on a condition one file is copied at a time", from.path)
	}
	if into || strings.HasSuffix(to.path, "/") {
		to.path = path.Join(to.path, filepath.Base(from.path))
	}
	f, err := os.Open(from.path)
	if err != nil {
		return err
	}
	defer f.Close()
	o.Mode = info.Mode().Perm()
	return t.cl.WriteFile(ctx, to.ref, to.path, t.copy.Reader(f, from.path, info.Size()), o)
}

// name is the name of a source in a directory: its own, or "." for what is in it.
func (s *source) name() (string, error) {
	dir, inside := contents(s.path)
	switch {
	case inside && (s.dir || s.remote()):
		return ".", nil
	case s.remote():
		if dir = path.Base(path.Clean(dir)); dir == "/" {
			dir = "."
		}
		return dir, nil
	}
	abs, err := filepath.Abs(s.path) // of "..", too, a name
	if err != nil {
		return "", err
	}
	name := filepath.Base(abs)
	if name == string(filepath.Separator) {
		name = "."
	}
	return name, nil
}

func (t *copier) unpackOptions() client.UnpackOptions {
	return client.UnpackOptions{User: t.user, Sync: t.sync, Outcomes: t.verbose}
}

// send packs sources as one archive, which the sandbox unpacks as it comes.
func (t *copier) send(ctx context.Context, all []source, to endpoint) error {
	r, w := io.Pipe()
	p, err := t.copy.NewPacker(ctx, w)
	if err != nil {
		return err
	}
	packed := make(chan error, 1)
	go func() {
		err := t.pack(ctx, p, all)
		w.CloseWithError(err) // nil: the end
		packed <- err
	}()
	sum, err := t.cl.UnpackFiles(ctx, to.ref, to.path, r, t.unpackOptions())
	r.CloseWithError(errUnwanted)
	unwanted := func(e error) bool { return errors.Is(e, errUnwanted) || errors.Is(e, io.ErrClosedPipe) }
	if perr := <-packed; perr != nil && (err == nil || !unwanted(perr)) {
		return perr
	}
	if err == nil && t.verbose {
		t.outcomes(sum.Outcomes)
	}
	one := all[0]
	if err == nil && len(all) == 1 && !one.dir && sum.Entries == 1 && sum.LeftOutTotal == 1 && len(sum.LeftOut) == 1 {
		return fault.New(fault.Denied, "%q cannot be written in the sandbox: %s", path.Join(to.path, one.as), sum.LeftOut[0].Reason).
			WithRemedy("use /workspace, or do it as the user root, where the sandbox allows that: --user root")
	}
	return t.made(sum, err)
}

// errUnwanted ends packing where the server wants no more.
var errUnwanted = errors.New("the server takes no more")

func (t *copier) pack(ctx context.Context, p *transfer.Packer, all []source) error {
	for _, s := range all {
		if err := t.packOne(ctx, p, s); err != nil {
			return err
		}
	}
	return p.Close()
}

func (t *copier) packOne(ctx context.Context, p *transfer.Packer, s source) error {
	if !s.remote() {
		return p.Add(s.path, s.as)
	}
	if s.out == nil {
		var err error
		if s.out, err = t.open(ctx, s.endpoint); err != nil {
			return err
		}
		defer s.out.Close()
	}
	if err := p.AddArchive(s.out, s.as); err != nil {
		return err
	}
	t.leftBy(s.out)
	return nil
}

// made tells what a sandbox did not make of an archive.
func (t *copier) made(sum *v1.Unpacked, err error) error {
	if err == nil {
		t.leftInside(sum.LeftOut, sum.LeftOutTotal)
	}
	return err
}

// outcomes prints what became of each file.
func (t *copier) outcomes(all []v1.Outcome) {
	for _, o := range all {
		if o.Reason != "" {
			fmt.Fprintf(t.a.Stdout, "failed %s: %s\n", output.Printable(o.Path), output.Printable(o.Reason))
			continue
		}
		fmt.Fprintf(t.a.Stdout, "copied %s %d\n", output.Printable(o.Path), o.Bytes)
	}
}

// local reads what a local path is.
func local(p string) (os.FileInfo, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "%s cannot be copied", p).WithRemedy("name a file or directory that is on this machine")
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fault.New(fault.Invalid, "%s is neither a file nor a directory (%s)", p, info.Mode().Type())
	}
	return info, nil
}
