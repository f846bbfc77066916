// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sandpit is the default profile: all that sandboxes can do as tools, in groups that
// a server switches on and off, with files as resources, prompts and a skill.
//
// # The default sandbox
//
// Tools that work in a sandbox may leave it out. Then they mean the one named
// "default-" and the token's name, which the first call that writes makes. So
// two agents with tokens of their own do not meet in one.
package sandpit
