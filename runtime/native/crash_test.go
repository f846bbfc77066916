// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// What the process that is to die reads from its environment.
const (
	crashPoint = "SANDPIT_TEST_CRASH_POINT"
	crashDir   = "SANDPIT_TEST_CRASH_DIR"
	crashAgent = "SANDPIT_TEST_CRASH_AGENT"
	crashRoot  = "SANDPIT_TEST_CRASH_ROOT"
)

func TestMain(m *testing.M) {
	if point := os.Getenv(crashPoint); point != "" {
		err := crash(point)
		fmt.Fprintln(os.Stderr, "the process should have been killed at", point, err)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// crash makes a sandbox and removes it, and is killed on the way.
func crash(point string) error {
	program, err := os.ReadFile(os.Getenv(crashAgent))
	if err != nil {
		return err
	}
	if strings.HasPrefix(point, lifeCrash) {
		return crashLife(point, program)
	}
	if strings.HasPrefix(point, volumeCrash) {
		return crashMount(strings.TrimPrefix(point, volumeCrash), program)
	}
	ctx := context.Background()
	d, err := crashDriver(point, program)
	if err != nil {
		return err
	}
	i, err := d.Create(ctx, crashSpec(os.Getenv(crashRoot)))
	if err != nil {
		return err
	}
	return i.Remove(ctx)
}

func crashSpec(root string) runtime.Spec {
	return runtime.Spec{
		ID: sandbox.NewID(), Image: runtime.Image{Root: root}, Hostname: "box",
		Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 256, Pids: 64},
	}
}

// Wherever a server is killed, the next one finds all that it left, can remove it, and
// can make sandboxes; and what had not begun to serve ends by itself.
func TestAServerThatIsKilledAtAnyStepLeavesNothingThatIsNotFound(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	program, err := agentProgram()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		t.Fatal(err)
	}
	scope := leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}}
	for _, point := range []string{
		"create.group", "create.socket", "create.born", "create.layer", "create.disk", "create.state", "create.groups",
		"create.inside", "create.told", "stop.killed", "remove.stopped", "remove.layer",
	} {
		t.Run(point, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), crashPoint+"="+point, crashDir+"="+dir, crashAgent+"="+path, crashRoot+"="+root)
			out, err := cmd.CombinedOutput()
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("the server was not killed: %v, %s", err, out)
			}
			d := open(t, dir, "")
			handles, err := d.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range handles {
				i, err := d.Open(t.Context(), h)
				if err != nil {
					t.Fatalf("open what was left: %v", err)
				}
				if point == "create.told" {
					if _, err := agent.NewClient(i.Dial).Ping(t.Context()); err != nil {
						t.Errorf("a sandbox that served does not answer: %v", err)
					}
				}
				if err := i.Remove(t.Context()); err != nil {
					t.Errorf("remove what was left: %v", err)
				}
			}
			if handles, err := d.List(t.Context()); err != nil || len(handles) != 0 {
				t.Errorf("still there: %v, %v", handles, err)
			}
			i, err := d.Create(t.Context(), crashSpec(root))
			if err != nil {
				t.Fatalf("a new sandbox: %v", err)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			nothing(t, scope)
		})
	}
}

// nothing waits until nothing of the scope is left but files.
func nothing(t *testing.T, scope leaktest.Scope) {
	t.Helper()
	kinds := []leaktest.Kind{
		leaktest.Processes, leaktest.Mounts, leaktest.Cgroups, leaktest.Namespaces, leaktest.Sockets, leaktest.Loops,
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		now, err := leaktest.Take(scope)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, k := range kinds {
			for name := range now[k] {
				left = append(left, string(k)+" "+name)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
		}
		<-time.After(20 * time.Millisecond) // the kernel tells nobody when it has let go
	}
}
