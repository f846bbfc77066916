// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package boot is what the native driver and its agent say to each other while
// a sandbox is made: one message with descriptors, and one reply, over a socket
// pair that the agent is born with.
//
// The agent ends when the socket closes before the message came, so that a
// server that is killed between starting an agent and writing down its pid
// leaves nothing behind. From the message on it serves, whether or not anybody hears
// its reply.
package boot
