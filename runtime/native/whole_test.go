// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// points tells of the checkpoints that a driver passes.
type points chan string

func (p points) await(t testing.TB, name string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case got := <-p:
			if got == name {
				return
			}
		case <-limit:
			t.Fatalf("the driver does not come to %s", name)
		}
	}
}

// ahead is a driver that has made a sandbox of spec's kind and n blanks since, whole as
// far as they are to be.
func ahead(t *testing.T, dir, root string, n int) (*native.Driver, points) {
	t.Helper()
	needRoot(t)
	program, err := agentProgram()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	p := make(points, 1000)
	d, err := native.Open(t.Context(), native.Options{Dir: dir, Agent: program, Blanks: n, Checkpoint: func(name string) { p <- name }})
	if err != nil {
		t.Fatal(err)
	}
	first, err := d.Create(t.Context(), specOf(sandbox.NewID(), root))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range n - (n+2)/4 {
		p.await(t, "whole.made")
	}
	return d, p
}

// under gives an image a further path, until the test ends.
func under(t *testing.T, image string) string {
	t.Helper()
	needRoot(t)
	path := t.TempDir()
	if err := unix.Mount(image, path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return path
}

func prepare(t *testing.T, d *native.Driver, spec runtime.Spec) sandbox.ID {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if id, ok := d.Prepared(spec); ok {
			return id
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is prepared")
		}
		<-time.After(time.Millisecond)
	}
}

func closeAndLookForLeaks(t *testing.T, d *native.Driver, dir string) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
	for _, of := range []string{"layers/layers", "layers/logs"} {
		if left, err := os.ReadDir(filepath.Join(dir, of)); err == nil && len(left) != 0 {
			t.Errorf("%s has %v", of, left)
		}
	}
}

// A sandbox that was made ahead is as one that was made when it was asked for, whatever
// limits it is asked for with.
func TestASandboxIsThereBeforeItIsAskedFor(t *testing.T) {
	root, dir := imagetest.Python(t).Root, trueDir(t)
	d, p := ahead(t, dir, root, 1)
	spec := specOf("", root)
	spec.Limits = sandbox.Limits{CPU: 1, MemoryMB: 128, DiskMB: 64, Pids: 32}
	spec.ID = prepare(t, d, spec)
	spec.Hostname = string(spec.ID)
	if handles, err := d.List(t.Context()); err != nil || len(handles) != 0 {
		t.Errorf("what was made ahead is listed: %v, %v", handles, err)
	}
	if _, err := d.Open(t.Context(), runtime.Handle{ID: spec.ID}); err == nil {
		t.Error("what was made ahead can be opened")
	}
	pid, _ := blankProcess(t, dir, spec.ID)
	for len(p) > 0 {
		<-p
	}
	i, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-p; got != "whole.suited" {
		t.Errorf("the create does %s", got)
	}
	if now, _ := blankProcess(t, dir, spec.ID); now != pid {
		t.Errorf("process 1 is %d, and was %d before it was asked for", now, pid)
	}
	const look = `exec 2>&1; hostname; id -u; ls /workspace; touch /workspace/a && echo ok; head -c 100M /dev/zero 2>/dev/null > /workspace/b || echo full; rm -f /workspace/b
python3 -c "x = bytearray(200 << 20)" || echo memory
python3 -c "import threading, time
for n in range(40): threading.Thread(target=time.sleep, args=(1,)).start()" 2>/dev/null || echo pids`
	want := string(spec.ID) + "\n1000\nok"
	if can, err := d.Probe(t.Context()); err != nil {
		t.Fatal(err)
	} else if can[runtime.LimitDisk] == nil {
		want += "\nfull"
	}
	want += "\nKilled\nmemory\npids"
	if got := output(t, i, "/bin/sh", "-c", look); got != want {
		t.Errorf("inside: %q, want %q", got, want)
	}
	if w, err := i.(runtime.Tracker).Track(t.Context(), sandbox.Workspace); err == nil {
		output(t, i, "touch", "/workspace/c")
		if c, err := w.Close(t.Context()); err != nil || len(c.Files) != 1 || c.Files[0].Path != "c" {
			t.Errorf("changes: %+v, %v", c, err)
		}
	}
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatalf("a second life: %v", err)
	}
	if got := output(t, i, "ls", "/workspace"); got != "a\nc" {
		t.Errorf("its disk: %q", got)
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeAndLookForLeaks(t, d, dir)
}

// What was made ahead is never in the way: where it does not fit, or is not well, the
// sandbox is made as without it.
func TestWhatWasMadeAheadMayBeWrong(t *testing.T) {
	image, dir := imagetest.Python(t).Root, trueDir(t)
	root := under(t, image) // a path that comes to lead elsewhere
	d, _ := ahead(t, dir, root, 1)
	for _, tc := range []struct {
		name  string
		spoil func(id sandbox.ID, spec *runtime.Spec)
	}{
		{"another name", func(_ sandbox.ID, spec *runtime.Spec) { spec.Hostname = "box" }},
		{"it died", func(id sandbox.ID, _ *runtime.Spec) {
			pid, _ := blankProcess(t, dir, id)
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(fd) }()
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n != 1 || err != nil {
				t.Fatalf("it does not die: %v", err)
			}
		}},
		{"its image was replaced", func(_ sandbox.ID, _ *runtime.Spec) {
			other := filepath.Join(t.TempDir(), "image")
			if err := exec.Command("cp", "-al", image, other).Run(); err != nil {
				if out, err := exec.Command("cp", "-a", image, other).CombinedOutput(); err != nil { // another file system
					t.Fatalf("%v, %s", err, out)
				}
			}
			if err := errors.Join(unix.Unmount(root, unix.MNT_DETACH), unix.Mount(other, root, "", unix.MS_BIND, "")); err != nil {
				t.Fatal(err)
			}
		}},
		{"another image", func(_ sandbox.ID, spec *runtime.Spec) { spec.Image.Root = image }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := specOf("", root)
			spec.ID = prepare(t, d, spec)
			spec.Hostname = string(spec.ID)
			tc.spoil(spec.ID, &spec)
			i, err := d.Create(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := output(t, i, "/bin/sh", "-c", "hostname; touch /workspace/a; ls /workspace"); got != spec.Hostname+"\na" {
				t.Errorf("inside: %q", got)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	closeAndLookForLeaks(t, d, dir)
}

// Who asks for something else gets what fits anything, and what nobody asks for any more
// makes room.
func TestWhatIsMadeAheadFollowsWhatIsAskedFor(t *testing.T) {
	image, dir := imagetest.Python(t).Root, trueDir(t)
	other := under(t, image)
	d, p := ahead(t, dir, image, 4) // three of them whole
	wants := specOf("", other)
	id := prepare(t, d, wants)
	if d.Whole(id) {
		t.Error("an image's sandbox is given to who asks for another's")
	}
	from := specOf("", image)
	from.From = sandbox.NewID()
	if id, ok := d.Prepared(from); ok && d.Whole(id) {
		t.Error("an empty disk is given to who asks for a snapshot's")
	}
	for range 8 {
		wants.ID = sandbox.NewID()
		i, err := d.Create(t.Context(), wants)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		p.await(t, "whole.made")
	}
	if id := prepare(t, d, wants); !d.Whole(id) {
		t.Error("nothing is made ahead for what is asked for now")
	}
	closeAndLookForLeaks(t, d, dir)
}

// Wherever a server is killed, what it made ahead goes, and what it gave away stays. Of what
// the host's crash leaves, which forgets all but disks, the driver can tell that nobody has it.
func TestAServerThatIsKilledWhileItMakesAhead(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	program, err := agentProgram()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"whole.marked", "whole.layer", "whole.made", "whole.suited", "whole.given", "stop.killed", itDied, hostCrash} {
		t.Run(point, func(t *testing.T) {
			dir := trueDir(t)
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), crashPoint+"="+wholeCrash+point, crashDir+"="+dir, crashAgent+"="+path, crashRoot+"="+root)
			out, err := cmd.CombinedOutput()
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("the server was not killed: %v, %s", err, out)
			}
			d := open(t, dir, "")
			handles, err := d.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := []runtime.Handle{}
			if point == "whole.given" || point == hostCrash {
				want = append(want, runtime.Handle{ID: sandbox.ID(strings.TrimSpace(string(out)))})
			}
			if diff := cmp.Diff(handles, want, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the next server finds (-got +want)\n%s", diff)
			}
			for _, h := range handles {
				if free, err := d.Unclaimed(h.ID); err != nil || free != (point == hostCrash) {
					t.Errorf("it is nobody's: %v, %v", free, err)
				}
				i, err := d.Open(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				if point != hostCrash {
					if got := output(t, i, "echo", "hello"); got != "hello" {
						t.Errorf("inside: %q", got)
					}
				}
				if err := i.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}
			closeAndLookForLeaks(t, d, dir)
		})
	}
}

// wholeCrash marks the points on the way of a sandbox that is made ahead.
const wholeCrash = "whole:"

// Points of no verb, once one is made.
const (
	itDied    = "died"  // its process 1, some time ago
	hostCrash = "crash" // of the host
)

// dieMakingAhead goes that way, and is killed at point.
func dieMakingAhead(point string, program []byte) error {
	ctx := context.Background()
	made, given := make(chan struct{}, 8), false
	d, err := native.Open(ctx, native.Options{Dir: os.Getenv(crashDir), Agent: program, Blanks: 1, Checkpoint: func(name string) {
		switch {
		case name == point && (given || name != "stop.killed"):
			if name == "stop.killed" { // and what follows the end of process 1 is done
				time.Sleep(300 * time.Millisecond)
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case name == "whole.made":
			made <- struct{}{}
		}
	}})
	if err != nil {
		return err
	}
	spec := specOf(sandbox.NewID(), os.Getenv(crashRoot))
	first, err := d.Create(ctx, spec)
	if err != nil {
		return err
	}
	if err := first.Remove(ctx); err != nil {
		return err
	}
	<-made
	for ok := false; !ok; {
		spec.ID, ok = d.Prepared(spec)
	}
	spec.Hostname = string(spec.ID)
	fmt.Println(spec.ID)
	switch point {
	case "stop.killed":
		given = true
		return d.Close()
	case itDied, hostCrash:
		return endAhead(point, spec.ID)
	}
	_, err = d.Create(ctx, spec)
	return err
}

// endAhead ends the sandbox that was made ahead, and us.
func endAhead(point string, id sandbox.ID) error {
	files := filepath.Join(native.InstancesDir(os.Getenv(crashDir), native.PathNamespace(os.Getenv(crashDir))), string(id))
	text, err := os.Readlink(files + ".state")
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscan(text, &pid); err != nil {
		return err
	}
	if point == hostCrash { // nothing in memory is left
		for _, of := range []string{".state", ".sock", ".ahead"} {
			if err := os.Remove(files + of); err != nil {
				return err
			}
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	time.Sleep(time.Second) // its groups and files go
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// Who gives up before it is its turn has used its blank up.
func TestNothingIsLeftOfABlankWhoseTurnDoesNotCome(t *testing.T) {
	needRoot(t)
	root, dir := imagetest.Python(t).Root, trueDir(t)
	d := prepared(t, dir, 1)
	spec := specOf(blankID(t, d), root)
	pid, _ := blankProcess(t, dir, spec.ID)
	leave := d.FillQueue()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.Create(ctx, spec); err == nil {
		t.Error("it has its turn")
	}
	leave()
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("process 1 of the blank is there: %v", err)
	}
	closeAndLookForLeaks(t, d, dir)
}
