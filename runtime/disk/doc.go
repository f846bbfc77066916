// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package disk reads the files of a disk as an Engine exports those of a container, or as an agent sends them, and makes of two such
// archives what a snapshot is elsewhere: a layer in the form of an OCI image's, with whiteouts for
// what was deleted, or a list of what changed. It also reads layers that come from outside, which
// are hostile. It knows archives alone, and neither an Engine nor a cluster.
//
// Files that each container has from its Engine, and those of the agent, are in neither.
package disk
