// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// ratioBounds are in runs of a program that does nothing on the host, by fork and exec, in the same minute.
var ratioBounds = []bound{
	{"create-first-command/time", 7.5, 14, "the median over pairs; 5 where a hypervisor answers CPUID, more where none does and the host's own program takes half as long"},
	{"create-first-command/least-time", 7.5, 14, "the fastest of all against the fastest: what else the machine does is in it least"},
	{"exec/time", 2, 3.9, "the median over pairs"},
	{"exec/least-time", 2, 3.9, "the fastest of all against the fastest"},
	{"life/processor-time", 10, 19, "of the server and all that ran inside, for create, command and delete; it depends least on the load"},
}

// quickRatioBounds hold in place of those of the same name where CPUID takes less than quickCPUID: the host's own
// program, which executes some 70, takes half as long there, and what a sandbox does takes as long.
var quickRatioBounds = []bound{
	{"life/processor-time", 18.4, 26, "of the commit that 10 was set by, where CPUID takes 1.3 µs"},
}

// quickCPUID is in microseconds; the bounds were set where one takes 9.
const quickCPUID = 4

// boundsHere returns the bounds of ratios on this machine.
func boundsHere() []bound {
	all := slices.Clone(ratioBounds)
	if cpuidCost() >= quickCPUID {
		return all
	}
	for _, q := range quickRatioBounds {
		i := slices.IndexFunc(all, func(b bound) bool { return b.name == q.name })
		all[i] = q
	}
	return all
}

// guardTries is how often the ratios are measured: noise only ever adds to what a thing costs, and to both
// sides, so that the least of each is nearest to the truth.
const guardTries = 3

// holdRatios has the program measure itself beside the host.
func holdRatios(t *testing.T, program, images string) {
	got, bounds := map[string]float64{}, boundsHere()
	for range guardTries {
		cmd := exec.CommandContext(t.Context(), program, "bench", "--parts", "first-command,exec", "--peers", "host", "--pairs", "60",
			"--images", images, "--data", t.TempDir(), "-o", "json")
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SANDPIT_") })
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil {
			t.Fatalf("sandpit bench: %v: %s", err, said.Bytes())
		}
		var r Report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("sandpit bench -o json wrote %q: %v", out.Bytes(), err)
		}
		for _, f := range []*Figures{r.FirstCommand["sandpit"], r.FirstCommand["host"], r.Exec["sandpit"], r.Exec["host"]} {
			if f == nil || f.OK != f.N {
				t.Fatalf("not all that was measured worked: %s", strings.Join(r.Failures, "; "))
			}
		}
		for name, now := range map[string]float64{
			"create-first-command/time":       1 / *r.FirstCommandRatio["host"],
			"create-first-command/least-time": r.FirstCommand["sandpit"].Min / r.FirstCommand["host"].Min,
			"exec/time":                       1 / *r.ExecRatio["host"],
			"exec/least-time":                 r.Exec["sandpit"].Min / r.Exec["host"].Min,
			"life/processor-time":             *r.CPU["sandpit"] / *r.CPU["host"],
		} {
			if least, ok := got[name]; !ok || now < least {
				got[name] = now
			}
		}
		if !exceeds(bounds, got) {
			break
		}
	}
	hold(t, bounds, got)
}

// exceeds reports whether anything is above its bound.
func exceeds(bounds []bound, got map[string]float64) bool {
	for _, b := range bounds {
		if got[b.name] > b.most {
			return true
		}
	}
	return false
}

// coatBounds are in times of the same call by /v1, the fastest of each against the fastest: with a look of 0.2 ms and a command
// of 1.5 ms they stay within the 0.3 ms that a wire may cost.
var coatBounds = []bound{
	{"orkestr-get/of-v1", 0.9, 1.6, "a translation of one call of the engine's"},
	{"orkestr-exec/of-v1", 1.06, 1.25, "a translation of one call of the engine's"},
	{"orkestr-write/of-v1", 1.08, 1.6, "within JSON, where /v1 takes bytes"},
	{"orkestr-read/of-v1", 1.06, 1.6, "within JSON, where /v1 sends bytes"},
	{"gateway-get/of-v1", 0.91, 1.6, "a translation of one call of the engine's"},
	{"gateway-exec/of-v1", 1.02, 1.25, "a translation of one call of the engine's"},
	{"gateway-write/of-v1", 0.96, 1.6, "bytes by both"},
	{"gateway-read/of-v1", 0.9, 1.6, "bytes by both"},
}

// guardPairs is how many pairs each call of a coat is measured in.
const guardPairs = 60

// holdCoats measures the wires of SDKs beside /v1, on one server.
func holdCoats(t *testing.T, s *server, o *ours) {
	got := map[string]float64{}
	for range guardTries {
		orkestr, gateway, err := s.coats(t.Context(), o, guardPairs)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]*Coat{"orkestr": orkestr, "gateway": gateway} {
			for call, both := range map[string][2]*Figures{"get": {c.GetV1, c.Get}, "exec": {c.ExecV1, c.Exec}, "write": {c.WriteV1, c.Write}, "read": {c.ReadV1, c.Read}} {
				key, now := name+"-"+call+"/of-v1", both[1].Min/both[0].Min
				if least, ok := got[key]; !ok || now < least {
					got[key] = now
				}
			}
		}
		if !exceeds(coatBounds, got) {
			break
		}
	}
	hold(t, coatBounds, got)
}
