// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/fork"
	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/linux/mount"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime"
)

// The oldest kernel that the runtime was tried on. Overlay takes idmapped layers since 5.19;
// what came later, to 6.15, has a second way ([mount.Namespace], furnish, the agent's reaping).
const leastMajor, leastMinor = 6, 1

// checkHost refuses a host on which nothing would work, with what to do.
func checkHost() error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Unsupported, "the native runtime needs root; this is uid %d", os.Geteuid()).
			WithRemedy("start the server with sudo")
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fault.Wrap(fault.Unsupported, err, "the kernel does not tell its release")
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil ||
		major < leastMajor || major == leastMajor && minor < leastMinor {
		return fault.New(fault.Unsupported, "the native runtime needs Linux %d.%d; this is %s", leastMajor, leastMinor, release).
			WithRemedy("update the kernel")
	}
	return nil
}

// Probe says what works. See [runtime.Driver].
func (d *Driver) Probe(context.Context) (runtime.Capabilities, error) {
	groups := d.cgroups.Info()
	c := runtime.Capabilities{
		runtime.Isolation:    nil,
		runtime.RootUser:     nil,
		runtime.Sudo:         sudoWorks(),
		runtime.RootDisk:     nil,
		runtime.Reopen:       nil,
		runtime.LimitCPU:     groups.Err(cgroup.CPU),
		runtime.LimitMemory:  groups.Err(cgroup.Memory),
		runtime.LimitSockets: groups.Err(cgroup.Sockets),
		runtime.LimitPids:    groups.Err(cgroup.PIDs),
		runtime.KillTree:     groups.Err(cgroup.Kill),
		runtime.LimitDisk:    d.layers.Info().DiskLimit,
		runtime.TrackChanges: d.changesErr,
		runtime.WatchFiles:   d.changesErr,
		runtime.Pause:        groups.Err(cgroup.Freeze),
		runtime.Resize:       nil, // of the limits that hold
		runtime.Snapshots:    groups.Err(cgroup.Freeze),

		runtime.CheapSnapshots: d.cheapSnapshots(),
		runtime.Volumes:        nil,
		runtime.VolumeParts:    nil,
		runtime.Network:        nil,
	}
	if c[runtime.LimitMemory] == nil {
		c[runtime.LimitMemory] = groups.Err(cgroup.Swap)
	}
	// The whole of it was tried when the driver was opened, but for this: the
	// host may have run out of namespaces meanwhile.
	if ns, err := spawn.NewUserNS(host.FirstUID, d.spawning); err != nil {
		c[runtime.Isolation] = fault.Wrap(fault.Unsupported, err, "the host gives no user namespace").
			WithRemedy("raise the sysctl user.max_user_namespaces")
	} else {
		_ = ns.Close()
	}
	return c, nil
}

// cheapSnapshots says why a snapshot costs more the more there is to copy, or nil.
func (d *Driver) cheapSnapshots() error {
	info := d.layers.Info()
	if info.Kind != layer.Plain {
		return nil
	}
	err := fault.New(fault.Unsupported, "snapshots that cost the same whatever their size need btrfs, and the store is plain directories")
	for _, declined := range info.Declined {
		if declined.Kind == layer.Loop {
			err.Message += ": " + fault.As(declined.Err).Message
			err.Remedy = fault.As(declined.Err).Remedy
		}
	}
	return err
}

const agentName = "sandpit-agent"

// placeAgent writes the agent's program under its digest, and opens it through
// a read-only mount of its own: nothing inside can write to it, whatever rights
// it gets. Older agents stay, since sandboxes still run them.
func placeAgent(dir string, program []byte) (*os.File, error) {
	if len(program) == 0 {
		return nil, fault.New(fault.Unsupported, "this build of sandpit has no agent in it").
			WithRemedy("build it with `make build`, which embeds the agent")
	}
	sum := sha256.Sum256(program)
	dir = filepath.Join(dir, hex.EncodeToString(sum[:12]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, agentName) // the name that ps shows
	if have, err := os.ReadFile(path); err != nil || sha256.Sum256(have) != sum {
		if err := atomicfile.Write(path, program, 0o711); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the agent cannot be written to the data directory")
		}
	}
	f, err := mount.CloneAt(unix.AT_FDCWD, path)
	if err != nil {
		return nil, err
	}
	if err := mount.SetAttr(f, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// sudoWorks says why the agent cannot start commands that code inside names; nil: it can.
func sudoWorks() error {
	if fork.MayBeAlone {
		return nil
	}
	return fault.New(fault.Unsupported, "sudo is written for amd64 alone").WithRemedy("run commands with user root")
}
