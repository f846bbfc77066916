// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"unicode/utf8"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// What is not complete yet has a name of its own beside the run's.
const (
	partSuffix = ".part"
	linkSuffix = ".link"
)

// Bounds of a tree of artifacts, which hostile code may have made.
const (
	maxArtifactDepth = 32
	maxArtifactDirs  = 5000
	maxArtifactName  = 255 // bytes
)

// copier copies the artifacts of one run. Names, sizes and contents come out of the
// sandbox: on the host they stay below one directory, whose names are made of single
// parts that the agent's client has checked, and every byte is counted as it comes.
// Only regular files and directories are looked at, never a link or a device.
type copier struct {
	o      ArtifactOptions
	client *agent.Client
	user   string
	base   *os.Root // of all runs
	part   string   // this run's directory in it
	link   string   // a name for one file in between
	before map[string]previous

	dirs int
	list []sandbox.Artifact
	sum  int64
}

// previous is a file of an earlier run of the same sandbox.
type previous struct {
	run string
	sandbox.Artifact
}

// copyOut copies all artifacts, or none.
func (w *worker) copyOut(ctx context.Context) ([]sandbox.Artifact, int64, error) {
	o := w.r.o.Artifacts
	run := w.record()
	client, release, err := w.r.engine.Connect(ctx, w.caller, access.SandboxesRead, string(run.Sandbox), activity)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, 0, fault.Wrap(fault.Unavailable, err, "the directory for artifacts cannot be made")
	}
	base, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, 0, fault.Wrap(fault.Unavailable, err, "the directory for artifacts cannot be opened")
	}
	defer base.Close()
	x := &copier{o: o, client: client, base: base, part: w.id + partSuffix, link: w.id + linkSuffix, user: userRoot}
	// As root, inside: another run's root may have written some of them. Where nothing may be
	// root, as the run's own user.
	if _, err := w.r.engine.CheckUser(userRoot); err != nil {
		x.user = run.User
	} else if _, err := client.Stat(ctx, sandbox.Artifacts, userRoot); fault.Is(err, fault.Denied) {
		x.user = run.User
	}
	w.r.removeArtifacts(w.id) // of an earlier attempt
	if err := base.Mkdir(x.part, 0o700); err != nil {
		return nil, 0, hostFault(err)
	}
	x.before = w.r.previousArtifacts(ctx, run)
	if err := x.dir(ctx, "", 0); err != nil {
		return nil, 0, err
	}
	if err := base.Rename(x.part, w.id); err != nil {
		return nil, 0, hostFault(err)
	}
	return x.list, x.sum, nil
}

// userRoot is the root of a sandbox.
const userRoot = "root"

// previousArtifacts returns the files of the latest run before one, by path.
func (r *Runner) previousArtifacts(ctx context.Context, run *sandbox.Run) map[string]previous {
	last, err := r.ArtifactRun(ctx, callerOf(run), string(run.Sandbox), Latest)
	if err != nil {
		return nil // then all are stored anew
	}
	all := make(map[string]previous, len(last.Artifacts))
	for _, a := range last.Artifacts {
		all[a.Path] = previous{last.ID, a}
	}
	return all
}

// dir copies a directory, named from the artifacts' on.
func (x *copier) dir(ctx context.Context, rel string, depth int) error {
	if x.dirs++; x.dirs > maxArtifactDirs || depth > maxArtifactDepth {
		return fault.New(fault.TooLarge, "there are more than %d directories in %s, or more than %d in one another", maxArtifactDirs, sandbox.Artifacts, maxArtifactDepth).
			WithRemedy("write one archive instead")
	}
	// One more than may be, so that it shows.
	most := x.o.MaxFiles - len(x.list) + maxArtifactDirs - x.dirs + 1
	entries, more, err := x.client.List(ctx, path.Join(sandbox.Artifacts, rel), sandbox.ListFilesOptions{User: x.user, Limit: min(max(most, 1), maxListed)})
	switch {
	case fault.Is(err, fault.NotFound): // the whole of it, or it went since it was listed
		return nil
	case err != nil:
		return err
	case more:
		return x.tooMany()
	}
	for _, fi := range entries {
		at := path.Join(rel, fi.Name)
		switch {
		case len(fi.Name) > maxArtifactName || !utf8.ValidString(fi.Name):
			continue
		case fi.Type == sandbox.Directory:
			if err := x.base.Mkdir(filepath.Join(x.part, filepath.FromSlash(at)), 0o700); err != nil {
				return hostFault(err)
			}
			if err := x.dir(ctx, at, depth+1); err != nil {
				return err
			}
		case fi.Type == sandbox.RegularFile:
			if err := x.file(ctx, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxListed is the most entries that an agent lists.
const maxListed = 100_000

func (x *copier) tooMany() error {
	return fault.New(fault.TooLarge, "there are more than %d files in %s", x.o.MaxFiles, sandbox.Artifacts).
		WithRemedy("write one archive instead, or delete what is not needed")
}

// file copies one file. What is no regular file any more is passed over.
func (x *copier) file(ctx context.Context, rel string) error {
	if len(x.list) == x.o.MaxFiles {
		return x.tooMany()
	}
	info, r, err := x.client.ReadFile(ctx, path.Join(sandbox.Artifacts, rel), sandbox.ReadFileOptions{User: x.user})
	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Invalid):
		return nil
	case err != nil:
		return err
	}
	defer r.Close()
	if info.Size > x.o.MaxFileBytes { // before a byte of it is read
		return x.tooLarge(rel)
	}
	name := filepath.Join(x.part, filepath.FromSlash(rel))
	f, err := x.base.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return hostFault(err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(r, min(x.o.MaxFileBytes, x.o.MaxBytes-x.sum)+1))
	if cerr := f.Close(); err == nil && cerr != nil {
		err = hostFault(cerr)
	}
	switch {
	case err != nil:
		return hostFault(err)
	case n > x.o.MaxFileBytes:
		return x.tooLarge(rel)
	case n > x.o.MaxBytes-x.sum:
		return fault.New(fault.TooLarge, "the files in %s have more than %d bytes together", sandbox.Artifacts, x.o.MaxBytes).
			WithRemedy("delete what is not needed, or read large files through the file calls")
	}
	a := sandbox.Artifact{Path: rel, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	x.share(name, a)
	x.list, x.sum = append(x.list, a), x.sum+n
	return nil
}

// share stores a file that an earlier run has as well only once.
func (x *copier) share(name string, a sandbox.Artifact) {
	p, ok := x.before[a.Path]
	if !ok || p.SHA256 != a.SHA256 || p.Size != a.Size || a.Size == 0 {
		return
	}
	// Not on every file system, and not where that run was collected meanwhile: then
	// there are two.
	if x.base.Link(filepath.Join(p.run, filepath.FromSlash(a.Path)), x.link) == nil {
		if x.base.Rename(x.link, name) != nil {
			_ = x.base.Remove(x.link)
		}
	}
}

func (x *copier) tooLarge(rel string) error {
	return fault.New(fault.TooLarge, "%q has more than %d bytes", sandbox.Clip(rel, 200), x.o.MaxFileBytes).
		WithRemedy("read it through the file calls, or write it in parts")
}

// hostFault returns the error of a host that could not store a file, in words that name no path.
func hostFault(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the server cannot store them")
}
