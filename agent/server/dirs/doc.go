// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package dirs opens and reads directories that others change meanwhile: without following a
// link, and without leaving what the sandbox's files are. It is a part of the agent, which lives among
// untrusted code.
package dirs
