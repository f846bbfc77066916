// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "sandpit.dev/api/v1"
)

// Tree is what commands take in a workspace of a size, with the list of files
// that they changed: it must not depend on the size.
type Tree struct {
	Files  int      `json:"files"`
	None   *Figures `json:"changes_none"` // argv ["/bin/true"]
	One    *Figures `json:"changes_one"`  // argv ["/usr/bin/touch", a file]
	Growth *float64 `json:"growth_ms"`    // of the latter over the smallest workspace: the median over rounds
}

// trees are the sizes of the workspaces, in files of no bytes, 20 to a directory.
var trees = []int{20, 10_000, 200_000}

// changes times commands in workspaces of several sizes, in turn.
func (o *ours) changes(ctx context.Context, n int, out *Report) (err error) {
	boxes := make([]string, len(trees))
	defer func() { err = errors.Join(err, settle(ctx, trees[len(trees)-1])) }()
	for i, files := range trees {
		box, _, cerr := o.client.Create(ctx, v1.CreateSandbox{})
		if cerr != nil {
			return cerr
		}
		defer func() { err = errors.Join(err, o.client.Delete(context.WithoutCancel(ctx), box.ID)) }()
		boxes[i] = box.ID
		if err := o.grow(ctx, box.ID, files); err != nil {
			return fmt.Errorf("a workspace of %d files: %w", files, err)
		}
	}
	none, one := make([]series, len(trees)), make([]series, len(trees))
	growth := make([][]float64, len(trees))
	for round := range n + warmUp {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if round == warmUp {
			clear(none)
			clear(one)
			clear(growth)
		}
		took := make([]time.Duration, len(trees))
		for k := range trees {
			i := (k + round) % len(trees) // none always runs in another's wake
			began := time.Now()
			none[i].add(since(began, o.exec(ctx, boxes[i], byArgv)))
			began = time.Now()
			err := o.touch(ctx, boxes[i])
			took[i] = time.Since(began)
			one[i].add(took[i], err)
		}
		for i := range trees {
			growth[i] = append(growth[i], ms(took[i]-took[0]))
		}
	}
	for i, files := range trees {
		out.FilesChanged = append(out.FilesChanged, Tree{files, none[i].figures(), one[i].figures(), median(growth[i])})
	}
	return nil
}

// grow makes files in a sandbox's workspace, of no bytes, 20 to a directory.
func (o *ours) grow(ctx context.Context, ref string, files int) error {
	return o.exec(ctx, ref, v1.Exec{Argv: growArgv(files), TimeoutSeconds: new(1800.0)})
}

// growArgv is the command that does.
func growArgv(files int) []string {
	const program = "import os,sys\nfor i in range(int(sys.argv[1])):\n if i%20==0: os.mkdir(f'd{i//20}')\n os.close(os.open(f'd{i//20}/f{i}',os.O_CREAT|os.O_WRONLY))"
	return []string{"python3", "-c", program, fmt.Sprint(files)}
}

// settle waits until the host's file system is done with a tree of so many files that was
// deleted, after the server has answered: it frees some 100,000 a second, and what others
// want to be committed meanwhile waits up to 0.2 s. That is not what the next part measures.
func settle(ctx context.Context, files int) error {
	return sleep(ctx, calm+time.Duration(files)*20*time.Microsecond)
}

func since(began time.Time, err error) (time.Duration, error) { return time.Since(began), err }

// touch runs a command that changes one file, which its result has to say.
func (o *ours) touch(ctx context.Context, ref string) error {
	r, err := o.client.Exec(ctx, ref, v1.Exec{Argv: []string{"/usr/bin/touch", "d0/f7"}})
	switch {
	case err != nil:
		return err
	case r.ExitCode == nil || *r.ExitCode != 0:
		return fmt.Errorf("touch ended with %s: %s", number(r.ExitCode), r.Stderr)
	case !r.FilesChangedComplete || len(r.FilesChanged) != 1 || r.FilesChanged[0].Path != "d0/f7" || r.FilesChanged[0].Action != "modified":
		return fmt.Errorf("touch changed %+v (complete %v)", r.FilesChanged, r.FilesChangedComplete)
	}
	return nil
}
