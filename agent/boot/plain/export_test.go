// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

// MakeHome is what an agent does with a home before it serves.
func MakeHome(c *Config) error { return c.makeHome() }

// Note is what an agent does with the number of its start.
func Note(number int64, dir string) error { return (&Start{Number: number}).note(dir) }
