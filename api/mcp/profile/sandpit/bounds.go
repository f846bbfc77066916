// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// paramBounds is the argument that lists are bounded by: ends of times and of sizes, named as in REST.
func paramBounds() toolset.Param {
	return toolset.Param{
		Name: "where", Kind: toolset.Texts, Aliases: []string{"filter", "filters"},
		About: "Ends: created, activity or expires (times like 2026-01-31T12:00:00Z), cpu_cores, memory_mb or disk_mb, each with _from or _to.",
	}
}

// paramSort says what a list of sandboxes is sorted by.
func paramSort() toolset.Param {
	p := toolset.Param{Name: "sort_by", Kind: toolset.Text, About: "The greatest first.", Aliases: []string{"sort", "order_by"}}
	for _, by := range engine.SandboxSorts() {
		p.Enum = append(p.Enum, string(by))
	}
	return p
}

// bounds reads what [paramBounds] describes; problems are kept in a.
func bounds(a *toolset.Args) (out engine.SandboxSpans) {
	times, amounts := make(map[string]*time.Time), make(map[string]*float64)
	for of, s := range map[string]*engine.TimeSpan{"created": &out.Created, "activity": &out.Active, "expires": &out.Expires} {
		times[of+"_from"], times[of+"_to"] = &s.From, &s.To
	}
	for of, s := range map[string]*engine.AmountSpan{"cpu_cores": &out.CPU, "memory_mb": &out.MemoryMB, "disk_mb": &out.DiskMB} {
		amounts[of+"_from"], amounts[of+"_to"] = &s.From, &s.To
	}
	given := a.Env("where")
	for _, end := range slices.Sorted(maps.Keys(given)) {
		var err error
		switch v := strings.TrimSpace(given[end]); {
		case times[end] != nil:
			if *times[end], err = time.Parse(time.RFC3339, v); err != nil {
				a.Add("where."+end, "%s is not a time such as 2026-01-31T12:00:00Z", toolset.Quote(toolset.Clip(v)))
			}
		case amounts[end] != nil:
			if *amounts[end], err = strconv.ParseFloat(v, 64); err != nil {
				a.Add("where."+end, "%s is not a number", toolset.Quote(toolset.Clip(v)))
			}
		default:
			a.Add("where", "has %s; it may have %s", toolset.Quote(toolset.Clip(end)),
				strings.Join(slices.Sorted(maps.Keys(times)), ", ")+", "+strings.Join(slices.Sorted(maps.Keys(amounts)), ", "))
		}
	}
	return out
}

// labels reads labels that a list is of: an object, a list of NAME=VALUE, or such with commas between.
func labels(a *toolset.Args) map[string]string {
	var text string
	if !a.Has("labels") || json.Unmarshal(a.Values["labels"], &text) != nil {
		return a.Env("labels")
	}
	out := make(map[string]string)
	for _, l := range a.List("labels") {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			a.Add("labels", "%s is not NAME=VALUE", toolset.Quote(toolset.Clip(l)))
		}
		out[name] = value
	}
	return out
}

// paramHeaders is the argument that [headers] reads.
func paramHeaders(about string) toolset.Param {
	return toolset.Param{
		Name: "headers", Kind: toolset.Texts, Field: "network.headers", Aliases: []string{"host_headers"},
		About: `Headers of requests to hosts, like {"api.example.org/X-Team": "blue"}; ` + about,
	}
}

// headers reads headers of hosts, by HOST/NAME, or as REST has them, in an object for each host; nil: nothing was said.
func headers(a *toolset.Args) *sandbox.HostHeaders {
	if !a.Has("headers") {
		return nil
	}
	out := make(sandbox.HostHeaders)
	if json.Unmarshal(a.Values["headers"], &out) == nil {
		return &out
	}
	clear(out)
	given := a.Env("headers")
	for _, of := range slices.Sorted(maps.Keys(given)) {
		host, name, ok := strings.Cut(of, "/")
		if !ok {
			a.Add("headers", "%s is not HOST/NAME", toolset.Quote(toolset.Clip(of)))
			continue
		}
		if out[host] == nil {
			out[host] = make(map[string]string)
		}
		out[host][name] = given[of]
	}
	return &out
}
