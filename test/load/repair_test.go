// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/sandbox"
)

// finding is one line of the doctor's.
type finding struct{ Name, Status, Detail, Remedy, Done string }

// doctor runs `sandpit doctor` on the host's data directory. What it finds of other tests'
// servers is left out.
func (h *host) doctor(args ...string) ([]finding, error) {
	h.t.Helper()
	found, err := h.doctorOfHost(args...)
	return slices.DeleteFunc(found, func(f finding) bool { return strings.HasPrefix(f.Name, "native/cgroups ") }), err
}

func (h *host) doctorOfHost(args ...string) ([]finding, error) {
	h.t.Helper()
	path, err := h.build()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"doctor", "-o", "json", "--data", filepath.Join(h.dir, "data")}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SANDPIT_") }),
		"SANDPIT_RUN_DIR="+filepath.Join(h.dir, "run"))
	cmd.Stderr = os.Stderr
	out, failed := cmd.Output()
	var found []finding
	if err := json.Unmarshal(out, &found); err != nil {
		h.t.Fatalf("doctor said %q: %v, %v", out, err, failed)
	}
	return found, failed
}

// loopOn attaches a loop device that stays by itself to a new file.
func loopOn(t *testing.T, path string) (device string) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", path).Output()
	if err != nil {
		t.Skipf("no loop device to be had: %v", err)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() }) // it may be gone
	return device
}

func bound(device string) bool {
	_, err := os.Stat("/sys/block/" + filepath.Base(device) + "/loop/backing_file")
	return err == nil
}

func alive(pid int) bool { return unix.Kill(pid, 0) == nil }

func TestDoctorMends(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	var ids []string
	for range 3 {
		box, _, err := h.client.Create(ctx, v1.CreateSandbox{})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.says(ctx, box.ID, "echo life > f; cat f", "life\n"); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, box.ID)
	}
	fine, dead, lost := ids[0], ids[1], ids[2]

	// Where a server is at work it is left to it.
	found, err := h.doctor("--repair")
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Detail, "has a server already") {
		t.Errorf("with a server: %+v, %v", found, err)
	}
	h.kill()

	// The mess. A sandbox whose process 1 is gone, one that no server can find again, a half of a
	// create with a process, a socket without anything, an unused device of a store, and files
	// that are open to others.
	data := filepath.Join(h.dir, "data")
	instances := filepath.Join(data, "native", "instances")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.Readlink(filepath.Join(instances, dead+".state"))
	must(err)
	pid, err := strconv.Atoi(strings.Fields(text)[0])
	must(err)
	must(unix.Kill(pid, unix.SIGKILL))
	must(os.Remove(filepath.Join(instances, lost+".state")))
	must(os.Symlink("nonsense", filepath.Join(instances, lost+".state")))
	half := string(sandbox.NewID())
	var groups []string
	for name := range h.look()[leaktest.Cgroups] {
		if filepath.Base(name) == h.marks[0] {
			must(os.Mkdir(filepath.Join(name, half), 0o755))
			groups = append(groups, filepath.Join(name, half))
		}
	}
	stray := exec.Command("sleep", "1000")
	must(stray.Start())
	go func() { _ = stray.Wait() }()
	joined := false
	for _, g := range groups {
		if _, err := os.Stat(filepath.Join(g, "cgroup.kill")); err == nil { // cgroup2
			must(os.WriteFile(filepath.Join(g, "cgroup.procs"), []byte(strconv.Itoa(stray.Process.Pid)), 0))
			joined = true
		}
	}
	if !joined {
		t.Fatalf("no cgroup2 among %v", groups)
	}
	orphan := filepath.Join(instances, string(sandbox.NewID())+".sock")
	must(os.WriteFile(orphan, nil, 0o600))
	ours := loopOn(t, filepath.Join(data, "native", "layers", "old.img"))
	must(os.Chmod(instances, 0o777))
	must(os.Chmod(filepath.Join(data, "sandpit.db"), 0o644))

	// Others' things, which the repair must not touch.
	theirs := loopOn(t, filepath.Join(h.dir, "theirs.img"))
	bystander := exec.Command("sleep", "1000")
	must(bystander.Start())
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	foreign := filepath.Join(filepath.Dir(filepath.Dir(groups[0])), "ffffffffffff")
	must(os.MkdirAll(filepath.Join(foreign, half), 0o755))
	defer func() { _ = os.Remove(filepath.Join(foreign, half)); _ = os.Remove(foreign) }()

	want := map[string]string{ // a part of the name, and of what is wrong
		"sandbox " + dead:  "process 1 is gone",
		"sandbox " + lost:  "cannot be read",
		"sandbox " + half:  "never finished",
		"native/instances": "mode 0777",
		"sandpit.db":       "mode 0644",
		"store":            ours,
		strings.TrimSuffix(filepath.Base(orphan), ".sock"): "socket",
	}
	told := func(found []finding, status string) {
		t.Helper()
		for name, what := range want {
			if !slices.ContainsFunc(found, func(f finding) bool {
				return strings.Contains(f.Name, name) && strings.Contains(f.Detail, what) && f.Status == status && (f.Done != "") == (status == "ok")
			}) {
				t.Errorf("of %s (%s) there is nothing with status %s in\n%s", name, what, status, listing(found))
			}
		}
		for _, f := range found {
			if strings.Contains(f.Name, fine) {
				t.Errorf("a sandbox that is well is told of: %+v", f)
			}
		}
	}
	found, _ = h.doctor()
	told(found, "warning")
	if !alive(stray.Process.Pid) || !bound(ours) {
		t.Error("a look changed something")
	}
	found, err = h.doctor("--repair")
	if err != nil {
		t.Errorf("doctor --repair: %v\n%s", err, listing(found))
	}
	told(found, "ok")
	if len(found) != len(want) {
		t.Errorf("it told of more than there was:\n%s", listing(found))
	}
	for _, f := range found {
		t.Logf("%s: %s ⇒ %s", f.Name, f.Detail, f.Done)
	}
	if _, err := os.Lstat(orphan); !errors.Is(err, fs.ErrNotExist) || bound(ours) {
		t.Errorf("still there: the socket (%v), or %s", err, ours)
	}
	if st, err := os.Stat(instances); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the mode of %s: %v, %v", instances, st.Mode(), err)
	}
	for _, g := range groups {
		if _, err := os.Stat(g); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", g)
		}
	}
	if _, err := os.Stat(filepath.Join(foreign, half)); err != nil || !bound(theirs) || !alive(bystander.Process.Pid) {
		t.Errorf("somebody else's thing was touched: %v", err)
	}

	// All is well then, and stays so.
	found, err = h.doctor("--repair")
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Detail, "nothing is wrong") {
		t.Errorf("again: %v\n%s", err, listing(found))
	}
	h.start()
	box, err := h.client.Get(ctx, fine)
	if err != nil || box.Status != "running" {
		t.Errorf("%s: %+v, %v", fine, box, err)
	}
	for _, id := range []string{fine, dead, lost} {
		if box, err := h.client.Get(ctx, id); err != nil || id != fine && (box.Status != "stopped" || box.StopCause != "host") {
			t.Errorf("%s: %+v, %v", id, box, err)
		}
		if _, err := h.client.Start(ctx, id); err != nil {
			t.Error(err)
		}
		if err := h.says(ctx, id, "cat f", "life\n"); err != nil {
			t.Error(err)
		}
	}
}

// What it must not decide it leaves, and says so by its exit status.
func TestDoctorLeavesWhatIsNotItsOwn(t *testing.T) {
	h := open(t)
	h.kill()
	if err := h.powerOff(t.Context()); err != nil && !strings.Contains(err.Error(), "no state") {
		t.Fatal(err)
	}
	data := filepath.Join(h.dir, "data")
	if err := os.Chown(filepath.Join(data, "native", "instances"), 4242, 4242); err != nil {
		t.Fatal(err)
	}
	db, err := os.OpenFile(filepath.Join(data, "sandpit.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(data, "sandpit.db-wal")) // it has the id of the installation yet
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data, "sandpit.db-wal")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(db.Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.WriteAt(make([]byte, max(0, len(whole)-100)), 100); err != nil {
		t.Fatal(err)
	}
	found, failed := h.doctor("--repair")
	if ee, ok := errors.AsType[*exec.ExitError](failed); !ok || ee.ExitCode() != 1 {
		t.Errorf("exit status: %v", failed)
	}
	for _, name := range []string{"data/native/instances", "records"} {
		if !slices.ContainsFunc(found, func(f finding) bool {
			return f.Name == name && f.Status == "failed" && f.Remedy != "" && f.Done == ""
		}) {
			t.Errorf("nothing is said of %s:\n%s", name, listing(found))
		}
	}
	st, err := os.Stat(filepath.Join(data, "native", "instances"))
	if err != nil || st.Sys().(*syscall.Stat_t).Uid != 4242 {
		t.Errorf("the owner was changed: %v", err)
	}
	// For the next server, which the test's end asks to go.
	if err := os.Chown(filepath.Join(data, "native", "instances"), os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.WriteAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "sandpit.db-wal"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	h.start()
}

func listing(found []finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%+v\n", f)
	}
	return b.String()
}
