// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"math"
	"reflect"
	"strconv"
	"testing"

	"sandpit.dev/runtime"
)

// What an Engine says of layers is told in sum, whatever it says.
func TestProgressOfAPull(t *testing.T) {
	var got runtime.ImageProgress
	told := 0
	say := layersTold(func(p runtime.ImageProgress) { got, told = p, told+1 })
	for _, s := range []struct {
		id, status  string
		done, total int64
		want        runtime.ImageProgress
	}{
		{"1", "Pulling from team/app", 0, 0, runtime.ImageProgress{}},
		{"a", "Pulling fs layer", 0, 0, runtime.ImageProgress{Layers: 1}},
		{"b", "Already exists", 0, 0, runtime.ImageProgress{Layers: 2, Ready: 1, Part: 0.5}},
		{"a", "Downloading", 250, 1000, runtime.ImageProgress{Layers: 2, Ready: 1, Done: 250, Total: 1000, Part: 0.6}},
		{"a", "Download complete", 0, 0, runtime.ImageProgress{Layers: 2, Ready: 1, Done: 1000, Total: 1000, Part: 0.9}},
		{"a", "Extracting", 500, 1000, runtime.ImageProgress{Layers: 2, Ready: 1, Done: 1000, Total: 1000, Part: 0.95}},
		{"a", "Pull complete", 0, 0, runtime.ImageProgress{Layers: 2, Ready: 2, Done: 1000, Total: 1000, Part: 1}},
		{"", "Status: Downloaded newer image", 0, 0, runtime.ImageProgress{Layers: 2, Ready: 2, Done: 1000, Total: 1000, Part: 1}},
	} {
		say(s.id, s.status, s.done, s.total)
		if math.Abs(got.Part-s.want.Part) > 1e-9 {
			t.Errorf("after %s of %s the part is %v, want %v", s.status, s.id, got.Part, s.want.Part)
		}
		each, sum := got.Each, got
		sum.Part, sum.Each = s.want.Part, nil
		if !reflect.DeepEqual(sum, s.want) {
			t.Errorf("after %s of %s it is %+v, want %+v", s.status, s.id, got, s.want)
		}
		var done, total int64
		ready := 0
		for _, l := range each {
			done, total = done+l.Done, total+l.Total
			if l.Ready {
				ready++
			}
		}
		if len(each) != got.Layers || done != got.Done || total != got.Total || ready != got.Ready || len(each) > 0 && each[0].ID != "a" {
			t.Errorf("after %s of %s its layers are %+v", s.status, s.id, each)
		}
		if s.status == "Extracting" && (!each[0].Here || each[0].Ready) {
			t.Errorf("what is unpacked is %+v", each[0])
		}
	}
	if text := got.String(); text != "0.0 of 0.0 MB, 2 of 2 layers" {
		t.Errorf("in words: %q", text)
	}
	for n := range 10 * maxPulled {
		say(strconv.Itoa(n), "Downloading", math.MaxInt64, math.MaxInt64)
		say(strconv.Itoa(n), "Downloading", -5, math.MinInt64)
		say(strconv.Itoa(n), "Downloading", math.MaxInt64, 5)
	}
	if got.Layers != maxPulled || got.Done < 0 || got.Total < got.Done || got.Part < 0 || got.Part > 1+1e-9 {
		t.Errorf("of an Engine that lies it is %+v", got)
	}
}
