// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/fault"
)

type base struct {
	Name *string `json:"name,omitempty"`
}

type thing struct {
	base
	ID     string            `json:"id"`
	Size   int64             `json:"size,omitempty"`
	Load   float64           `json:"load,omitempty"`
	Most   *int              `json:"most"`
	Up     bool              `json:"up,omitempty"`
	Since  time.Time         `json:"since,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	Counts map[string]int    `json:"counts,omitempty"`
	Net    *net              `json:"net,omitempty"`
	Parts  []part            `json:"parts,omitempty"`
	Any    any               `json:"any,omitempty"`
	hidden int
}

type net struct {
	Mode string `json:"mode"`
	Deep *part  `json:"deep,omitempty"`
}

type part struct {
	Port int `json:"port"`
}

func printed(t *testing.T, format string, found ...thing) (string, error) {
	t.Helper()
	c := &cobra.Command{}
	how := ListFlags(c, "ids only")
	if err := c.ParseFlags([]string{"--format", format}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	err := List(&b, how, found, func(one thing) string { return one.ID }, Columns[thing]{})
	return b.String(), err
}

func TestAFieldThatThereIsNotIsRefused(t *testing.T) {
	one := thing{ID: "a", Any: map[string]any{"x": 1}, hidden: 1}
	for format, want := range map[string]string{
		"{{.nosuch}}":                           `there is no field "nosuch"`,
		"{{.siz}}":                              `there is no field "siz"; did you mean size?`,
		"{{.ID}}":                               `there is no field "ID"; did you mean id?`,
		"{{.hidden}}":                           `there is no field "hidden"`,
		"{{.net.nosuch}}":                       `there is no field "nosuch" in net`,
		"{{.net.deep.prt}}":                     `there is no field "prt" in net.deep; did you mean port?`,
		"{{if .up}}{{.nosuch}}{{end}}":          `there is no field "nosuch"`,
		"{{if .up}}a{{else}}{{.nosuch}}{{end}}": `there is no field "nosuch"`,
		"{{range .parts}}{{.id}}{{end}}":        `there is no field "id"`,
		"{{range $i, $p := .parts}}{{$p.nosuch}}{{end}}": `there is no field "nosuch"`,
		"{{with .net}}{{.id}}{{end}}":                    `there is no field "id"`,
		"{{$n := .net}}{{$n.nosuch}}":                    `there is no field "nosuch"`,
		"{{range .parts}}{{$.nosuch}}{{end}}":            `there is no field "nosuch"`,
		"{{json .nosuch}}":                               `there is no field "nosuch"`,
		"{{.nosuch | json}}":                             `there is no field "nosuch"`,
		"{{(.net).nosuch}}":                              `there is no field "nosuch"`,
	} {
		for _, found := range [][]thing{{one}, nil} {
			got, err := printed(t, format, found...)
			if fault.Of(err) != fault.Invalid || !strings.HasPrefix(fault.As(err).Message, "--format: "+want) || !strings.HasPrefix(fault.As(err).Remedy, "the fields") || got != "" {
				t.Errorf("%s of %d: got %q, %v, want %s", format, len(found), got, err, want)
			}
		}
	}
	if _, err := printed(t, "{{.nosuch}}"); !strings.HasSuffix(fault.As(err).Remedy, "are any, counts, id, labels, load, most, name, net, parts, since, size, up") {
		t.Errorf("the fields: %v", fault.As(err).Remedy)
	}
}

func TestAFieldWithoutAValuePrintsNothing(t *testing.T) {
	name, most := "web", 3
	full := thing{
		base: base{&name}, ID: "a", Size: 5, Load: 0.5, Most: &most, Up: true, Labels: map[string]string{"team": "x\x1b[2J"}, Counts: map[string]int{"up": 2},
		Net: &net{Mode: "off", Deep: &part{80}}, Parts: []part{{1}, {2}}, Any: map[string]any{"x": 1}, Since: time.Unix(0, 0).UTC(),
	}
	for format, want := range map[string][2]string{
		"{{.name}}|{{.id}}|{{.size}}|{{.load}}|{{.most}}|{{.up}}|{{.since}}":      {"web|a|5|0.5|3|true|1970-01-01T00:00:00Z", "|b|0|0||false|"},
		"{{.labels.team}}|{{index .labels `team`}}|{{.counts.up}}":                {`x\u001b[2J|x\u001b[2J|2`, "||"},
		"{{.net.mode}}|{{.net.deep.port}}":                                        {"off|80", "|"},
		"{{.net}}":                                                                {"map[deep:map[port:80] mode:off]", ""},
		"{{json .net}}{{json .parts}}{{json .labels}}":                            {`{"deep":{"port":80},"mode":"off"}[{"port":1},{"port":2}]{"team":"x\\u001b[2J"}`, "null[]{}"},
		"{{if .net}}net{{else}}none{{end}}":                                       {"net", "none"},
		"{{range .parts}}{{.port}},{{else}}none{{end}}":                           {"1,2,", "none"},
		"{{range $i, $p := .parts}}{{$i}}{{$p.port}}{{$.id}}{{end}}":              {"01a12a", ""},
		"{{with .name}}{{.}}{{end}}{{eq .name `web`}}":                            {"webtrue", "false"},
		"{{$x := .id}}{{if .up}}{{$x = .net}}{{end}}{{len .parts}}":               {"2", "0"},
		"{{define `T`}}{{.port}}{{end}}{{range .parts}}{{template `T` .}}{{end}}": {"12", ""},
	} {
		got, err := printed(t, format, full, thing{ID: "b"})
		if want := want[0] + "\n" + want[1] + "\n"; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", format, got, err, want)
		}
	}
}
