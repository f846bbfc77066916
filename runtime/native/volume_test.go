// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// volumeCrash marks the points of a create that mounts a volume, which crashMount goes through.
const volumeCrash = "volume:"

func crashMount(point string, program []byte) error {
	d, err := crashDriver(point, program)
	if err != nil {
		return err
	}
	ctx := context.Background()
	id := sandbox.NewID()
	if err := d.CreateVolume(ctx, id, 0); err != nil {
		return err
	}
	spec := crashSpec(os.Getenv(crashRoot))
	spec.Mounts = []sandbox.Mount{{Volume: id, Path: "/workspace/data", Sub: "part"}}
	i, err := d.Create(ctx, spec)
	if err != nil {
		return err
	}
	if err := i.Stop(ctx, 0); err != nil {
		return err
	}
	return d.RemoveVolume(ctx, id)
}

// A volume is kept as long as a sandbox of an earlier server may have it mounted,
// whether anybody has looked for that sandbox or not, and no longer.
func TestAServerThatIsKilledWhileAVolumeIsMounted(t *testing.T) {
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
	for _, tc := range []struct {
		point           string
		mounted, exists bool
	}{
		{"volume.created", false, true},
		{"create.volumes", false, true},
		{"create.told", true, true},
		{"stop.killed", false, true},
		{"volume.removed", false, false},
	} {
		t.Run(tc.point, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), crashPoint+"="+volumeCrash+tc.point, crashDir+"="+dir, crashAgent+"="+path, crashRoot+"="+root)
			out, err := cmd.CombinedOutput()
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("the server was not killed: %v, %s", err, out)
			}
			d := open(t, dir, "")
			defer func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}()
			volumes, err := d.Volumes(t.Context())
			if err != nil || len(volumes) != map[bool]int{true: 1}[tc.exists] {
				t.Fatalf("the volumes are %v, %v", volumes, err)
			}
			handles, err := d.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tc.mounted {
				for _, when := range []string{"before", "after"} {
					if err := d.RemoveVolume(t.Context(), volumes[0]); fault.Of(err) != fault.Conflict {
						t.Errorf("%s its sandbox is found: RemoveVolume gives %v, want a conflict", when, err)
					}
					if _, err := d.Open(t.Context(), handles[0]); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, h := range handles {
				i, err := d.Open(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				if err := i.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for _, id := range volumes {
				if err := d.RemoveVolume(t.Context(), id); err != nil {
					t.Errorf("RemoveVolume: %v", err)
				}
			}
			left, err := filepath.Glob(filepath.Join(dir, "instances", "*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}

// Volumes are mounted by a script of their own.
func TestAVolumeIsMountedByThePortableSpawn(t *testing.T) {
	needRoot(t)
	d := openWith(t, native.Options{Dir: t.TempDir(), Spawn: spawn.Portable})
	t.Cleanup(func() { _ = d.Close() })
	id := sandbox.NewID()
	if err := d.CreateVolume(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	for n, command := range []string{"echo kept > data/file", "cat data/file"} {
		spec := specOf(sandbox.NewID(), imagetest.Python(t).Root)
		spec.Mounts = []sandbox.Mount{{Volume: id, Path: sandbox.Workspace + "/data"}}
		i, err := d.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = i.Remove(context.Background()) })
		if got, want := output(t, i, "bash", "-c", command), []string{"", "kept"}[n]; got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}
