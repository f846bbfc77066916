// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/programs"
)

// oci runs a command by the `run` of a runtime that knows OCI's bundles, in an overlay
// of its own over the image that sandpit's sandboxes share. Only `run` is timed,
// which ends with the command: the overlay is mounted and config.json written
// before, as if an engine had them ready. The configuration is what the runtime's `spec`
// gives, with sandpit's default limits, a writable root, and all namespaces but that of
// users. A further command is the runtime's `exec` in a container that stays.
//
// It is less than sandpit does: no user namespace, no seccomp filter (but gVisor's
// own, around its kernel), and no daemon that records.
type oci struct {
	ociRuntime
	parts   peerParts
	kit     programs.Kit
	version string
	spec    specs.Spec
	thread  *programs.Private
	n       int
	kept    string // id of the container that stays; "": there is none yet
}

// ociRuntime is how runtimes differ.
type ociRuntime struct {
	program string
	from    programs.Source
	flags   []string // before the verb
	// Some refuse hosts with cgroups of version 1 beside a hierarchy of version 2:
	// the latter is unmounted in their mount namespace, and in no other.
	oneHierarchy bool
}

// keptSeconds is how long a container stays should we be killed and not end it.
const keptSeconds = 3600

func openRunc(ctx context.Context, parts peerParts) (Peer, error) {
	return openOCI(ctx, parts, ociRuntime{program: "runc", from: programs.DebianPackage("runc")})
}

func openCrun(ctx context.Context, parts peerParts) (Peer, error) {
	return openOCI(ctx, parts, ociRuntime{program: "crun", from: programs.DebianPackage("crun"), oneHierarchy: true})
}

// openRunsc opens gVisor, on the platform that needs nothing of the processor.
func openRunsc(ctx context.Context, parts peerParts) (Peer, error) {
	return openOCI(ctx, parts, ociRuntime{
		program: "runsc",
		from:    programs.GoProgram{Package: "gvisor.dev/gvisor/runsc", Version: "v0.0.0-20260905035102-160fafc42237"},
		flags:   []string{"--platform=systrap", "--network=none"},
	})
}

func openOCI(ctx context.Context, parts peerParts, runtime ociRuntime) (_ Peer, err error) {
	r := &oci{ociRuntime: runtime, parts: parts}
	if r.kit, err = parts.programs.Find(ctx, r.program, r.from); err != nil {
		return nil, err
	}
	if r.version, err = r.kit.Version(ctx, r.program); err != nil {
		return nil, err
	}
	spec := r.kit.Command(ctx, r.program, "spec")
	spec.Dir = parts.dir
	if err := programs.Said(spec); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(parts.dir, "config.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &r.spec); err != nil || r.spec.Process == nil || r.spec.Linux == nil {
		return nil, fmt.Errorf("what %s spec wrote is no configuration: %w", r.program, err)
	}
	if r.thread, err = programs.NewPrivate(); err != nil {
		return nil, err
	}
	if r.oneHierarchy {
		err = r.thread.Do(func() error {
			err := unix.Unmount("/sys/fs/cgroup/unified", unix.MNT_DETACH)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
				return nil // there is only one
			}
			return err
		})
	}
	if err == nil {
		_, _, err = r.FirstCommand(ctx) // does it work here at all
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *oci) Version() string { return r.version }

// Close ends what stays. What a runtime forgot is ended by its cgroup.
func (r *oci) Close() error {
	var err error
	if r.kept != "" {
		err = r.remove(context.Background(), r.kept)
	}
	r.thread.Close()
	return errors.Join(err, programs.SweepGroup(r.parts.group))
}

func (r *oci) FirstCommand(ctx context.Context) (took, cpu time.Duration, err error) {
	id := r.next()
	if err := r.prepare(id, "/bin/true"); err != nil {
		return 0, 0, errors.Join(err, r.drop(id))
	}
	took, cpu, err = r.do(ctx, "run", "--bundle", r.bundle(id), id)
	if err != nil { // it may have left a container
		return 0, 0, errors.Join(err, r.remove(ctx, id))
	}
	return took, cpu, r.drop(id)
}

func (r *oci) Exec(ctx context.Context) (time.Duration, error) {
	if r.kept == "" {
		id := r.next()
		if err := r.prepare(id, "sleep", strconv.Itoa(keptSeconds)); err != nil {
			return 0, errors.Join(err, r.drop(id))
		}
		if _, _, err := r.do(ctx, "run", "--bundle", r.bundle(id), "--detach", id); err != nil {
			return 0, errors.Join(err, r.remove(ctx, id))
		}
		r.kept = id
	}
	took, _, err := r.do(ctx, "exec", r.kept, "/bin/true")
	return took, err
}

// do runs one of the runtime's verbs where the overlays are mounted.
func (r *oci) do(ctx context.Context, args ...string) (took, cpu time.Duration, err error) {
	all := append([]string{"--root", filepath.Join(r.parts.dir, "state")}, r.flags...)
	err = r.thread.Do(func() (err error) {
		took, cpu, err = spent(ctx, r.parts.dir, func(ctx context.Context) *exec.Cmd {
			return r.kit.Command(ctx, r.program, append(all, args...)...)
		})
		return err
	})
	return took, cpu, err
}

// next returns an id. All are equally long: some runtimes take the begin of an id for it.
func (r *oci) next() string {
	r.n++
	return fmt.Sprintf("sandpit-%08d", r.n)
}

func (r *oci) bundle(id string) string { return filepath.Join(r.parts.dir, id) }

// prepare makes the container's bundle.
func (r *oci) prepare(id string, argv ...string) error {
	if err := r.thread.Do(func() error { return mountOverlay(r.parts.image.Root, r.bundle(id)) }); err != nil {
		return err
	}
	b, err := json.Marshal(r.config(id, argv))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.bundle(id), "config.json"), b, 0o600)
}

func (r *oci) drop(id string) error {
	return r.thread.Do(func() error { return dropOverlay(r.bundle(id)) })
}

// remove ends a container and drops its bundle.
func (r *oci) remove(ctx context.Context, id string) error {
	_, _, err := r.do(ctx, "delete", "--force", id)
	return errors.Join(err, r.drop(id))
}

// config lays what differs over what the runtime itself proposes.
func (r *oci) config(id string, argv []string) *specs.Spec {
	process, linux := *r.spec.Process, *r.spec.Linux
	process.Terminal, process.Args = false, argv
	linux.CgroupsPath = "/" + r.parts.group + "/" + id
	limits := specs.LinuxResources{}
	if linux.Resources != nil {
		limits = *linux.Resources // which devices there are
	}
	limits.Memory = &specs.LinuxMemory{Limit: new(int64(limitMemory)), Swap: new(int64(limitMemory))}
	limits.CPU = &specs.LinuxCPU{Quota: new(int64(limitCPUs * 100_000)), Period: new(uint64(100_000))}
	limits.Pids = &specs.LinuxPids{Limit: new(int64(limitPids))}
	linux.Resources = &limits
	for _, kind := range []specs.LinuxNamespaceType{
		specs.PIDNamespace, specs.NetworkNamespace, specs.MountNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace,
	} {
		if !slices.ContainsFunc(linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == kind }) {
			linux.Namespaces = append(slices.Clip(linux.Namespaces), specs.LinuxNamespace{Type: kind})
		}
	}
	c := r.spec
	c.Hostname, c.Root, c.Process, c.Linux = "sandbox", &specs.Root{Path: rootName}, &process, &linux
	return &c
}
