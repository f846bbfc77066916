// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package inside makes a native sandbox's inside. It runs in the agent, which is
// process 1 in fresh namespaces and still sees a copy of the host's mounts:
// trusted code, before any code of the sandbox's runs.
//
// # The root
//
// The overlay comes as a detached mount. /dev, /proc, /sys and /dev/shm are
// moved into it through descriptors, then it becomes the root and the host's
// tree is let go. Nothing of the image is followed on the way: each mount point
// is opened below the overlay without links.
//
// # Two views
//
// Linux keeps the mount namespace, capabilities, seccomp filter and file-system
// credentials per thread, and a fork inherits those of the thread that forked.
// So each view of the sandbox is a locked thread of the agent: the root view
// sees the overlay writable and runs commands as the sandbox's root with eight
// capabilities; the user view has a mount namespace of its own in which only
// the user's directories are writable, and no capability survives its execve.
// The agent's other threads keep what they need to mount. No helper is executed
// per command, and no thread leaves its view again.
//
// The package knows nothing of the server; it shares with the driver only the
// message of package boot.
package inside
