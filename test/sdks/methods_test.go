// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sdks

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// methodsPage is where each public method of the SDKs has a row, and each example of their readmes.
const methodsPage = "../../docs/sdk-methods.md"

// Titles on the page.
const (
	ofOrkestr = "Orkestr"
	ofGateway = "The MCP Gateway"
	methods   = "methods"
	examples  = "examples"
)

var (
	className = regexp.MustCompile("^#### `(\\w+)`$")
	rowForm   = regexp.MustCompile("^\\| `?([^|`]+)`? \\| (.+) \\|$")
)

// rows are those of one SDK and one kind on the page: of Class.method or of the heading of an example, what it says.
func rows(t *testing.T, sdk, kind string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(methodsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "\n## "+sdk+"\n")
	if !ok {
		t.Fatalf("%s says nothing of %s", methodsPage, sdk)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, ok = strings.Cut(text, "\n### Its "+kind+"\n")
	if !ok {
		t.Fatalf("%s has no %s of %s", methodsPage, kind, sdk)
	}
	text, _, _ = strings.Cut(text, "\n### ")
	all, class := make(map[string]string), ""
	for line := range strings.SplitSeq(text, "\n") {
		if m := className.FindStringSubmatch(line); m != nil {
			class = m[1] + "."
		}
		m := rowForm.FindStringSubmatch(line)
		if m == nil || m[2] == "here" || strings.HasPrefix(m[2], "---") {
			continue
		}
		if all[class+m[1]] != "" {
			t.Errorf("%s has two rows", class+m[1])
		}
		all[class+m[1]] = m[2]
	}
	return all
}

// holds fails where what came of something is not what its row says, where something has no row, and where a row is of nothing.
func holds(t *testing.T, rows map[string]string, result string, least int) {
	t.Helper()
	b, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]string
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < least {
		t.Errorf("there are but %d: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		here, ok := rows[key]
		if !ok {
			t.Errorf("%s has no row in %s; it came to %q", key, methodsPage, all[key])
		} else if why := differs(here, all[key]); why != "" {
			t.Errorf("%s: the row says %q, but %s", key, here, why)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if _, ok := all[key]; !ok {
			t.Errorf("there is a row for %s, which the package has not", key)
		}
	}
}

// refusal is how a row begins that says what is raised, of several classes in the order of the alphabet.
var refusal = regexp.MustCompile(`^(?:refused|not by this SDK), (\w+(?: or \w+)*): .`)

// differs says how outcomes are not what a row says, "" if they are. What works may be refused, too, of input that is bad.
func differs(here string, outcomes []string) string {
	m := refusal.FindStringSubmatch(here)
	switch {
	case strings.HasPrefix(here, "local: "):
		return ""
	case len(outcomes) == 0:
		return "nothing calls it"
	case here == "works" || strings.HasPrefix(here, "works: "):
		if !slices.Contains(outcomes, "ok") {
			return "it came to " + strings.Join(outcomes, ", ")
		}
		return ""
	case m != nil:
		if want := strings.Split(m[1], " or "); !slices.Equal(slices.Sorted(slices.Values(outcomes)), want) {
			return "it came to " + strings.Join(outcomes, ", ")
		}
		return ""
	default:
		return "that is none of works, local with a reason, and refused with a class and a reason"
	}
}

// What the table cannot say is found.
func TestARowThatIsWrongIsFound(t *testing.T) {
	for _, c := range []struct {
		here     string
		outcomes []string
		wrong    bool
	}{
		{"works", []string{"ok"}, false},
		{"works: at once", []string{"APIError", "ok"}, false},
		{"works", []string{"APIError"}, true},
		{"works", nil, true},
		{"worked", []string{"ok"}, true},
		{"refused, APIError: no", []string{"APIError"}, false},
		{"refused, APIError: no", []string{"APIError", "ok"}, true},
		{"refused, APIError: no", []string{"AuthError"}, true},
		{"refused, APIError", []string{"APIError"}, true},
		{"refused, APIError or AuthError: no", []string{"AuthError", "APIError"}, false},
		{"refused, APIError or AuthError: no", []string{"APIError"}, true},
		{"not by this SDK, AttributeError: it has none", []string{"AttributeError"}, false},
		{"refused: no", []string{"APIError"}, true},
		{"local", nil, true},
		{"local: asks nobody", nil, false},
	} {
		if got := differs(c.here, c.outcomes); (got != "") != c.wrong {
			t.Errorf("%q with %q: %q", c.here, c.outcomes, got)
		}
	}
}
