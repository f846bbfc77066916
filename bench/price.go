// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

// price tells where the price of authentication and of recording is measured. Switching
// them off would tell it here, but no server can be told to ask nobody for a token, or to
// run a command that is not on record, and for the sake of a figure none shall be. So
// they are measured below the API, by benchmarks of the packages that do the work.
func (s *session) price() {
	const run = "no server can be told to do without it; below the API, go test -run - -bench "
	s.out.Missing["price of authentication"] = run + "'Check|Guard' ./access/bearer ./api/guard measures it"
	s.out.Missing["price of recording"] = run + "Recording ./engine measures it, in pairs with a store that keeps no events"
}
