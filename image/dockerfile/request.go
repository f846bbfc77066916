// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile

// Request is a build as it is asked for.
type Request struct {
	Name       string            // a reference for the image, as app:1.4; "": it has its digest alone
	Dockerfile string            // its name in the context; "": Dockerfile
	Target     string            // name or number of a stage; "": the last
	Args       map[string]string // values of ARG
	Anew       bool              // no step is taken over from an earlier build
}

// Event is what is told of a build while it goes on: where it is, or what a step writes.
type Event struct {
	Stage, Text string  // "step 2 of 5", "RUN make"
	Progress    float64 // 0 to 1
	Step, Steps int     // of a step: its number, from 1
	Line        int     // of a step: in the Dockerfile
	Kept        bool    // of a step: it is taken over from an earlier build
	Output      []byte  // what a step writes, of both its streams; it holds until the call returns
}
