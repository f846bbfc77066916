// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package docker is the runtime on an Engine that is there already: Docker's, or Podman's service.
//
// A sandbox is a container of that Engine, and its disk is the container's writable layer. The
// driver keeps no record of its containers: it finds them by their labels, which name the server's
// namespace and the sandbox. A container that merely has such labels, as one of an image that was
// committed of ours has, is a stranger's: ours is of the image that its labels name. Strangers'
// containers are neither shown nor touched.
//
// The agent is process 1. It comes by a read-only volume that is named after the digest of its
// program and filled once per Engine. Where server and Engine see the same files, it is reached by a
// unix socket in a directory of the server's that is mounted in the container. Else it is reached
// through the Engine, by one stream that carries all calls. Which of the two it is, a trial says.
// Either way connections begin with a handshake by a key that the agent gets at each start.
//
// A volume is one of the Engine's, found by its name and its labels. A sandbox gets other volumes by a
// new container of its disk: see remount.go.
//
// A snapshot is an image that is committed of a container, see keep.go for whose it is; one from
// outside is a file of the server's until it is known of which image it is.
//
// What becomes of containers is told by the Engine's events, to one goroutine. When they break
// off, it looks at each container that was up once they are there again.
package docker
