// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package host is what a driver on this kernel keeps of its instances on the host, and in no
// store: the directory with the files of those that are up ([Instances]), the state by which
// the next server finds a process again ([State]), and the uid ranges that no two of them
// share ([Ranges]).
//
// An instance is what a driver calls so: it has an id, which is part of file names, a first
// process, and a range of uids while it is up. A namespace sets the instances of one driver's
// directory apart from those of others on the host, in the names of directories and groups.
//
// It knows no sandbox, no disk and no driver.
package host
