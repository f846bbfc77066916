// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// Random verbs on sandboxes while their disks, the store, the disk of the host and with it that
// of the records fill up and are freed, with the server killed at random moments and started again
// on whatever is full. What was answered is there afterwards, what was refused has changed
// nothing, and every sandbox can be stopped and deleted at every moment.
func TestSurviveKill9OnFullDisks(t *testing.T) {
	var disk *ownDisk
	h := openOn(t, "127.0.0.1:0", func(data string) { disk = mountDisk(t, data) })
	ctx := t.Context()
	if err := h.cycle(ctx); err != nil {
		t.Fatal(err)
	}
	h.http.CloseIdleConnections()
	before := h.rest()

	w := newTravel()
	w.disk = disk
	kills := length(25, 500)
	began := time.Now()
	var worst time.Duration
	for n := range kills {
		if err := disk.change(); err != nil {
			t.Fatal(err)
		}
		if err := h.killedAmid(ctx, w); err != nil {
			t.Fatalf("before kill %d, %s: %v", n+1, disk, err)
		}
		killed := time.Now()
		h.start()
		worst = max(worst, time.Since(killed))
		if err := w.endSome(ctx, h.client); err != nil {
			t.Fatalf("after kill %d, %s: %v", n+1, disk, err)
		}
		if err := errors.Join(disk.leave(roomy), h.untilReady(ctx)); err != nil {
			t.Fatalf("after kill %d: %v", n+1, err)
		}
		if err := w.reconcile(ctx, h.client, false); err != nil {
			t.Fatalf("after kill %d: %v", n+1, err)
		}
		if rand.IntN(6) == 0 {
			if err := w.freeStore(ctx, h.client); err != nil {
				t.Fatalf("after kill %d: %v", n+1, err)
			}
		}
	}
	if err := errors.Join(w.freeDisks(ctx, h.client), w.reconcile(ctx, h.client, true)); err != nil {
		t.Fatalf("at the end: %v", err)
	}
	t.Logf("%d kills among %d answered verbs in %v; back after %v at the latest; %v; full of: %v", kills, w.total(),
		time.Since(began).Round(time.Millisecond), worst.Round(time.Millisecond), w.did, w.full)

	// All of it goes while there is no byte left.
	for _, id := range sortedKeys(w.boxes) {
		if b := w.boxes[id]; b.status[0] == "running" {
			if err := b.fill(ctx, h.client); err != nil && !w.refused("fill", err) {
				t.Fatal(err)
			}
		}
	}
	if err := disk.leave(0); err != nil {
		t.Fatal(err)
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Fatalf("%s: %v", disk, err)
	}
	if err := h.deleteSnapshots(ctx); err != nil {
		t.Fatalf("%s: %v", disk, err)
	}
	if err := errors.Join(disk.leave(roomy), h.untilReady(ctx)); err != nil {
		t.Fatal(err)
	}
	h.holdNothingBeyond(before)
}

// endSome stops a sandbox and deletes another, now and then, whatever is full.
func (w *travel) endSome(ctx context.Context, c *client.Client) error {
	for _, id := range sortedKeys(w.boxes) {
		b := w.boxes[id]
		unsure := b.leaving || b.forking > 0
		for _, k := range b.kept {
			unsure = unsure || k.leaving || !k.sure
		}
		if unsure {
			continue
		}
		switch rand.IntN(12) {
		case 0:
			if err := c.Delete(ctx, id); err != nil {
				return fmt.Errorf("delete of %s (%v): %w", id, b.status, err)
			}
			w.buried(b)
		case 1:
			if len(b.status) == 1 && b.status[0] != "stopped" {
				b.status = []string{"stopped"}
				box, err := c.Stop(ctx, id)
				if err != nil {
					return fmt.Errorf("stop of %s: %w", id, err)
				}
				if err := b.is(box); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// freeStore removes what fills the store, and the snapshots, which keep it.
func (w *travel) freeStore(ctx context.Context, c *client.Client) error {
	if err := w.freeDisks(ctx, c); err != nil {
		return err
	}
	for s, err := range c.Snapshots(ctx, client.SnapshotQuery{}) {
		if err == nil {
			err = c.DeleteSnapshot(ctx, s.ID)
		}
		if err != nil {
			return err
		}
	}
	for _, b := range w.boxes {
		clear(b.kept)
	}
	w.left = nil
	return nil
}

// freeDisks removes what fills the disks of those that run.
func (w *travel) freeDisks(ctx context.Context, c *client.Client) error {
	for _, id := range sortedKeys(w.boxes) {
		if b := w.boxes[id]; b.status[0] == "running" {
			if err := b.free(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// refused reports whether a verb, and not one that ends something, was refused by a full disk.
func (w *travel) refused(verb string, err error) bool {
	if w.disk == nil || slices.Contains([]string{"stop", "delete", "drop"}, verb) {
		return false
	}
	e, ok := errors.AsType[*fault.Error](err)
	disk := fault.SandboxDisk // or all disks together: a program sees no difference
	switch {
	case ok && e.Code == fault.Full:
		disk = e.Disk
	case !errors.Is(err, errNoSpaceInside):
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full[disk]++
	return true
}

// errNoSpaceInside is that a command met a full disk.
var errNoSpaceInside = errors.New("a command found no space")

func noSpaceInside(r *v1.ExecResult) bool {
	return r.ExitCode != nil && *r.ExitCode != 0 && (strings.Contains(r.Stderr, "No space left on device") ||
		strings.Contains(r.Stderr, "Disk quota exceeded") || strings.Contains(r.Stderr, "Input/output error")) // the last of fsync
}

// diskMB is a limit that is soon reached, or one of which two fill the store.
func diskMB() int { return []int{64, 1024}[rand.IntN(2)] }

// fillFiles are what fills a disk.
const fillFiles = "/var/tmp/fill"

// fill takes much of the sandbox's disk, or of the store, or writes until one of them is full.
func (b *travelled) fill(ctx context.Context, c *client.Client) error {
	n := rand.IntN(3)
	command := fmt.Sprintf("fallocate -l %dM %s%d", 100+rand.IntN(800), fillFiles, n)
	if rand.IntN(2) == 0 {
		command = fmt.Sprintf("head -c %dM /dev/zero > %s%d", 8+rand.IntN(32), fillFiles, n)
	}
	r, err := c.Exec(ctx, b.id, v1.Exec{Command: &command})
	if err == nil && noSpaceInside(r) {
		return errNoSpaceInside
	}
	if err == nil && (r.ExitCode == nil || *r.ExitCode != 0) {
		return fmt.Errorf("%q gave %s, cause %q, %s", command, code(r.ExitCode), r.Cause, r.Stderr)
	}
	return err
}

// free removes that again, which needs no space.
func (b *travelled) free(ctx context.Context, c *client.Client) error {
	r, err := c.Exec(ctx, b.id, v1.Exec{Command: new("rm -f " + fillFiles + "?")})
	if err == nil && (r.ExitCode == nil || *r.ExitCode != 0) {
		return fmt.Errorf("what fills the disk of %s cannot be removed: %s, cause %q, %s", b.id, code(r.ExitCode), r.Cause, r.Stderr)
	}
	return err
}

// unsynced is that a file may be lost where a disk is full.
func (b *travelled) unsynced(path string) {
	b.worlds.each(func(d disk) { d.wrote(path, anything) })
}

// sync brings a file that was written to the disk, and knows it to be there then.
func (b *travelled) sync(ctx context.Context, c *client.Client, path, content string) error {
	r, err := c.Exec(ctx, b.id, v1.Exec{Command: new("sync " + path)})
	switch {
	case fault.Is(err, fault.Full):
		return nil
	case err != nil:
		return err
	case noSpaceInside(r):
		return nil
	case r.ExitCode == nil || *r.ExitCode != 0:
		return fmt.Errorf("sync %s gave %s, cause %q, %s", path, code(r.ExitCode), r.Cause, r.Stderr)
	}
	b.wrote(path, content)
	return nil
}

// clone is what is known of b, for restore.
func (b *travelled) clone() *travelled {
	c := *b
	c.status, c.worlds, c.kept = slices.Clone(b.status), b.worlds.clone(), make(map[string]*keptDisk, len(b.kept))
	for name, k := range b.kept {
		was := *k
		c.kept[name] = &was
	}
	return &c
}

// restore is that a verb which was refused has changed nothing.
func (b *travelled) restore(was *travelled) {
	b.status, b.worlds, b.lines, b.writer = was.status, was.worlds, was.lines, was.writer
	b.kept, b.forking, b.leaving = was.kept, was.forking, was.leaving
}

// untilReady waits until the server has seen that the disk has room.
func (h *host) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status, _, err := h.get(ctx, "/readyz")
		if err != nil {
			return err
		}
		_, figures, err := h.get(ctx, "/metrics")
		if err != nil {
			return err
		}
		var free float64
		for line := range strings.Lines(figures) {
			if strings.HasPrefix(line, "sandpit_host_free_bytes") {
				if free, err = strconv.ParseFloat(strings.Fields(line)[1], 64); err != nil {
					return err
				}
			}
		}
		if status == http.StatusOK && free > 1<<30 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("with room again /readyz is still %d, and %v bytes are seen to be free", status, free)
		case <-tick.C:
		}
	}
}

func (h *host) get(ctx context.Context, path string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	answer, err := h.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(b), err
}

// ownDisk is a file system of the data directory's own.
type ownDisk struct {
	dir string

	mu      sync.Mutex
	ballast *os.File
	held    int64 // by the ballast
	free    int64 // that was left last; roomy: all
}

// roomy leaves all that is free.
const roomy = int64(-1)

// mountDisk mounts an ext4 of 5 GiB, so much being what a store of the least size asks for. Its
// file is sparse: little of it is ever written.
func mountDisk(t *testing.T, dir string) *ownDisk {
	t.Helper()
	image := filepath.Join(filepath.Dir(dir), "disk.img")
	f, err := os.Create(image)
	if err == nil {
		err = errors.Join(f.Truncate(5<<30), f.Close())
	}
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-m", "0", "-N", "16384", "-J", "size=16", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ballast.Close() })
	return &ownDisk{dir: dir, ballast: ballast, free: roomy}
}

func (d *ownDisk) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.free == roomy {
		return "with room on the disk"
	}
	return fmt.Sprintf("with %d bytes left on the disk", d.free)
}

// change fills the disk or frees it: to below the reserve of the host, to below that of the
// records, to its last byte.
func (d *ownDisk) change() error {
	levels := []int64{roomy, roomy, 250 << 20, 100 << 20, 4 << 20, 0}
	return d.leave(levels[rand.IntN(len(levels))])
}

// leave has so much free on the disk.
func (d *ownDisk) leave(free int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = free
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return err
	}
	want := max(0, int64(st.Bavail)*int64(st.Bsize)+d.held-free)
	if free == roomy {
		want = 0
	}
	if want < d.held {
		d.held = want
		return d.ballast.Truncate(want)
	}
	// The file system's own blocks are among the last.
	for step := want - d.held; step >= 4096; {
		switch err := unix.Fallocate(int(d.ballast.Fd()), 0, d.held, step); err {
		case nil:
			d.held += step
			step = min(step, want-d.held)
		case unix.EINTR:
		case unix.ENOSPC:
			step /= 2
		default:
			return err
		}
	}
	return nil
}
