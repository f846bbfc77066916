// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/programs"
)

// bare runs an image's own programs on the host: in the image's root, read-only, by the
// user that a sandbox's commands have, with a directory as /workspace, and in no sandbox.
// Only the mounts differ from those of the host, and chroot is all that is between.
type bare struct {
	thread *programs.Private
	root   string
	work   string // the directory that is /workspace, as the thread sees it
	mounts []string
}

// user is that of a sandbox's commands, as images have it.
const user = 1000

// newBare makes one in the new directory dir over the image whose root is given. device is a block device with a
// btrfs in which the workspace is to lie, "": it lies in dir. It is all in a mount
// namespace of its own: nothing of it outlives the process.
func newBare(dir, image, device string) (_ *bare, err error) {
	b := &bare{root: filepath.Join(dir, "root"), work: filepath.Join(dir, "work")}
	if b.thread, err = programs.NewPrivate(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	return b, b.thread.Do(func() error {
		if device != "" {
			top := filepath.Join(dir, "store")
			if err := os.MkdirAll(top, 0o700); err != nil {
				return err
			}
			// The file system is mounted already: this is the same one, once more, with the
			// flags that the store has.
			if err := b.mount(device, top, "btrfs", unix.MS_NOATIME|unix.MS_NODEV|unix.MS_NOSUID); err != nil {
				return err
			}
			b.work = filepath.Join(top, "bench-work")
		}
		for _, d := range []string{b.root, b.work} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				return err
			}
		}
		if err := os.Chown(b.work, user, user); err != nil {
			return err
		}
		for _, m := range []struct {
			from, to, kind string
			flags          uintptr
		}{
			{image, "", "", unix.MS_BIND},
			{"", "", "", unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY},
			{"proc", "proc", "proc", 0},
			{"/dev", "dev", "", unix.MS_BIND},
			{b.work, "workspace", "", unix.MS_BIND},
		} {
			if err := b.mount(m.from, filepath.Join(b.root, m.to), m.kind, m.flags); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bare) mount(from, to, kind string, flags uintptr) error {
	if err := unix.Mount(from, to, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", from, to, err)
	}
	if flags&unix.MS_REMOUNT == 0 {
		b.mounts = append(b.mounts, to)
	}
	return nil
}

// put writes a file into the workspace.
func (b *bare) put(name string, content []byte) error {
	return b.thread.Do(func() error { return os.WriteFile(filepath.Join(b.work, name), content, 0o644) })
}

// run runs a program to its end, and gives what it printed. What it started ends with it
// when ctx does.
func (b *bare) run(ctx context.Context, env []string, argv ...string) (string, error) {
	var out, said bytes.Buffer
	err := b.thread.Do(func() error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/workspace", env, &out, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Chroot: b.root, Credential: &syscall.Credential{Uid: user, Gid: user}, Setpgid: true,
		}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = 5 * time.Second
		return cmd.Run()
	})
	if err != nil {
		return "", fmt.Errorf("%s on the host: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.String(), nil
}

// close removes what work left, and takes the mounts down.
func (b *bare) close() error {
	err := b.thread.Do(func() error {
		err := os.RemoveAll(b.work)
		for i := len(b.mounts) - 1; i >= 0; i-- {
			err = errors.Join(err, unix.Unmount(b.mounts[i], unix.MNT_DETACH))
		}
		return err
	})
	b.thread.Close()
	return err
}
