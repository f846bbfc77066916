// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/internal/packagestest"
)

// methodsPage is where each public method of the SDKs has a row.
const methodsPage = "../../docs/daytona-methods.md"

// row says of a method what it does here.
type row struct {
	here string // begins with works, refused or local
	seen bool
}

var (
	className = regexp.MustCompile("^### `(\\w+)`$")
	rowForm   = regexp.MustCompile("^\\| (?:`(\\w+)`|–) \\| (?:`(\\w+)`|–) \\| (.+) \\|$")
)

// methodRows are the rows of the page by Class.method, those of TypeScript and those of Python.
func methodRows(t *testing.T) (typescript, python map[string]*row) {
	t.Helper()
	b, err := os.ReadFile(methodsPage)
	if err != nil {
		t.Fatal(err)
	}
	typescript, python = make(map[string]*row), make(map[string]*row)
	add := func(to map[string]*row, key, here string) {
		if to[key] != nil {
			t.Errorf("%s has two rows", key)
		}
		to[key] = &row{here: here}
	}
	var class string
	for line := range strings.SplitSeq(string(b), "\n") {
		if strings.HasPrefix(line, "#") {
			class = ""
		}
		if m := className.FindStringSubmatch(line); m != nil {
			class = m[1]
		}
		m := rowForm.FindStringSubmatch(line)
		if m == nil || class == "" {
			continue
		}
		if m[1] != "" {
			add(typescript, class+"."+m[1], m[3])
		}
		if m[2] != "" {
			add(python, class+"."+m[2], m[3])
		}
	}
	return typescript, python
}

// holds fails where what came of a method is not what its row says, where a method has no row, and where a row has no method.
func holds(t *testing.T, rows map[string]*row, result string, missing func(key string) bool) {
	t.Helper()
	b, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var methods map[string][]string
	if err := json.Unmarshal(b, &methods); err != nil {
		t.Fatal(err)
	}
	if len(methods) < 100 {
		t.Errorf("the SDK has but %d methods: %v", len(methods), slices.Sorted(maps.Keys(methods)))
	}
	for _, key := range slices.Sorted(maps.Keys(methods)) {
		r := rows[key]
		if r == nil {
			t.Errorf("%s has no row in %s; it came to %q", key, methodsPage, methods[key])
			continue
		}
		r.seen = true
		if why := differs(r.here, methods[key]); why != "" {
			t.Errorf("%s: the row says %q, but %s", key, r.here, why)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if !rows[key].seen && !missing(key) {
			t.Errorf("there is a row for %s, which is no method of the SDK", key)
		}
	}
}

// refusals are the errors that clients raise for a status: their own class, that of the generated client where they let it
// through, and the bare one where the status comes to them by a WebSocket or while they stream.
var refusals = map[string][]string{
	"403": {"DaytonaAuthorizationError", "DaytonaForbiddenError"},
	"422": {"DaytonaUnprocessableEntityError", "UnprocessableEntityException", "DaytonaError"},
	"503": {"DaytonaServiceUnavailableError", "DaytonaError"},
}

// differs says how outcomes are not what a row says, "" if they are.
func differs(here string, outcomes []string) string {
	status, refused := strings.CutPrefix(here, "refused, ")
	switch {
	case strings.HasPrefix(here, "local"):
		return ""
	case len(outcomes) == 0:
		return "nothing calls it"
	case here == "works" || strings.HasPrefix(here, "works: "):
		if !slices.Equal(outcomes, []string{"ok"}) {
			return "it came to " + strings.Join(outcomes, ", ")
		}
		return ""
	case refused && len(status) >= 3 && refusals[status[:3]] != nil:
		for _, o := range outcomes {
			if !slices.Contains(refusals[status[:3]], o) {
				return "it came to " + o
			}
		}
		return ""
	default:
		return "that begins with none of works, local and refused with a status that is known"
	}
}

// open for the public, as the operator may have it.
func publicPreviews(t *testing.T, env []string) {
	t.Helper()
	cmd := exec.Command(program, "settings", "set", "max_previews=public")
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("set max_previews: %v\n%s", err, out)
	}
}

func TestEachMethodOfPythonDoesWhatItsRowSays(t *testing.T) {
	for _, side := range []string{"sync", "async"} {
		t.Run(side, func(t *testing.T) {
			_, rows := methodRows(t)
			env, result := serve(t), filepath.Join(t.TempDir(), "methods.json")
			publicPreviews(t, env)
			withServers(t, env)
			ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
			defer cancel()
			cmd := exec.CommandContext(ctx, packagestest.NeedPip(t, "daytona-pip", "."), "-B", "-W", "ignore::DeprecationWarning", "testdata/methods.py", side, result)
			cmd.Env = append(slices.Clip(env), "PYTHONPATH=../checks")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			holds(t, rows, result, func(key string) bool { return side == "sync" && key == "Daytona.close" })
		})
	}
}

func TestEachMethodOfTypeScriptDoesWhatItsRowSays(t *testing.T) {
	p := packagestest.NeedNPM(t, "daytona-npm", ".")
	script, err := filepath.Abs("testdata/methods.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, sdk := range []string{"@daytonaio/sdk", "@daytona/sdk"} {
		t.Run(strings.Trim(strings.ReplaceAll(sdk, "/", "-"), "@"), func(t *testing.T) {
			rows, _ := methodRows(t)
			env, result := serve(t), filepath.Join(t.TempDir(), "methods.json")
			publicPreviews(t, env)
			withServers(t, env)
			ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
			defer cancel()
			cmd := p.Command(ctx, script, result)
			cmd.Env = append(env, "SDK="+filepath.Join(p.Dir, "node_modules", sdk))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			holds(t, rows, result, func(string) bool { return false })
		})
	}
}

// What the table cannot say is found: a method without a row, a row without a method, and an outcome that is another.
func TestARowThatIsWrongIsFound(t *testing.T) {
	for _, c := range []struct {
		here     string
		outcomes []string
		wrong    bool
	}{
		{"works", []string{"ok"}, false},
		{"works: at once", []string{"ok"}, false},
		{"works", nil, true},
		{"works", []string{"ok", "DaytonaError"}, true},
		{"worked", []string{"ok"}, true},
		{"refused, 422: no", []string{"DaytonaUnprocessableEntityError"}, false},
		{"refused, 422: no", []string{"DaytonaUnprocessableEntityError", "ok"}, true},
		{"refused, 503", []string{"DaytonaUnprocessableEntityError"}, true},
		{"refused, 418", []string{"DaytonaError"}, true},
		{"local", nil, false},
	} {
		if got := differs(c.here, c.outcomes); (got != "") != c.wrong {
			t.Errorf("%q with %q: %q", c.here, c.outcomes, got)
		}
	}
}
