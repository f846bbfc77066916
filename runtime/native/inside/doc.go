// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package inside is the agent's part in the making of a native sandbox. The
// server makes the root, its mounts and the user's mount namespace from outside
// (see package furnish) while the agent, process 1, starts; here the agent takes
// them over and makes its threads.
//
// # Two views
//
// Linux keeps the mount namespace, capabilities, seccomp filter and file-system
// credentials per thread, and a fork inherits those of the thread that forked.
// So each view of the sandbox is a locked thread of the agent: the root view
// sees the overlay writable and runs commands as the sandbox's root with eight
// capabilities; the user view is in a mount namespace of its own in which only
// the user's directories are writable, and no capability survives its execve.
// The agent's other threads keep what they need to mount. No helper is executed
// per command, and no thread leaves its view again.
//
// # What programs are told
//
// The files that tell the sandbox's limits and use are written here, and the calls that tell the host's
// are answered: the filters of both views hand those over.
//
// The package knows nothing of the server; it shares with the driver only the
// message of package boot.
package inside
