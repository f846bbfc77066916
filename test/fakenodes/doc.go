// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package fakenodes holds tests of a server with many sandboxes in the pods of a cluster. Its nodes are this process: for each of their pods an agent
// serves here, at the pod's address, without a container. The API server, its controllers and its scheduler are the real ones.
package fakenodes
