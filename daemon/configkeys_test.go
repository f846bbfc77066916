// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"reflect"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestAMistakeInTheConfigurationFileIsToldWithWhatWasMeant(t *testing.T) {
	for name, row := range map[string]struct{ file, want string }{
		"ASlip":                 {"data: /srv\nlissten: a:1\n", `line 2: there is no key "lissten"; did you mean listen?`},
		"ASlipInASection":       {"limits:\n  max:\n    memory: 1\n", `line 3: there is no key "memory" in limits.max; did you mean memory_mb?`},
		"AnotherSectionsKey":    {"max_mode: off\n", `line 1: there is no key "max_mode"; it belongs in network`},
		"AKeyOfTheTop":          {"log:\n  listen: a:1\n", `line 2: there is no key "listen" in log; it belongs in the top of the file`},
		"AKeyOneSectionFurther": {"limits: {pids: 9}\n", `there is no key "pids" in limits; it belongs in limits.max`},
		"AKeyOfSeveralSections": {"pids: 9\n", `there is no key "pids"; it belongs in defaults, limits.max, pools or templates`},
		"AKeyWithItsSection":    {"network.max_mode: off\n", `there is no key "network.max_mode"; it belongs in network, as max_mode`},
		"AWordThatIsNone":       {"preview: {frobnicate: 1}\n", `there is no key "frobnicate" in preview; the keys there are domain`},
		"AListsKey":             {"pools:\n- min: 1\n- mx: 2\n", `line 3: there is no key "mx" in pools; did you mean max?`},
		"AnInnerField":          {"Others: []\n", `there is no key "Others"; the keys there are admin_token, allow_root, `},
		"ASecretKey":            {"secrets: {keys: abc}\n", `there is no key "keys" in secrets; the keys there are key_file`},
		"AMergedKey":            {"x: &a {minn: 1}\npools: [{<<: *a}]\n", `line 1: there is no key "x"`},
		"Several":               {"aa: 1\nbb: 1\ncc: 1\ndd: 1\nee: 1\nff: 1\ngg: 1\n", "; and 2 more"},
		"ANumberThatIsNone":     {"defaults:\n  memory_mb: 1G\n", `line 2: defaults.memory_mb is "1G", and not a whole number`},
		"ATimeThatIsNone":       {"defaults: {retention: 7d}\n", `defaults.retention is "7d", and not a length of time`},
		"ALevelThatIsNone":      {"log: {level: loud}\n", `log.level is "loud", and not debug, info, warn or error`},
		"AListWhereATextIs":     {"listen: [a]\n", `listen is a list, and not a text`},
		"ATextWhereAListIs":     {"hosts: a.example\n", `hosts is "a.example", and not a list`},
		"ATextWhereASectionIs":  {"preview: localhost\n", `preview is "localhost", and not a section with the keys domain`},
		"AListForAFile":         {"- listen\n", `the file is a list, and not a section`},
		"NoYAML":                {"listen: a:1\n\tdata: x\n", "is not valid YAML: line "},
		"ALongKey":              {strings.Repeat("x", 1000) + ": 1\n", `…"; the keys there are`},
	} {
		t.Run(name, func(t *testing.T) {
			c := DefaultConfig()
			err := c.ReadFile(write(t, row.file))
			if fault.Of(err) != fault.Invalid || !strings.Contains(fault.As(err).Message, row.want) || fault.As(err).Remedy == "" {
				t.Errorf("got %v, want %s", err, row.want)
			}
			if err != nil && strings.Contains(err.Error(), "daemon.") {
				t.Errorf("it names a type of ours: %v", err)
			}
		})
	}
	for name, file := range map[string]string{
		"Empty": "", "Comments": "# nothing\n", "EmptySections": "log:\nnetwork:\n  names:\n", "ANumberForAText": "data: 5\n",
		"Merged": "pools:\n- &a {min: 1}\n- {<<: *a, name: b}\n- {<<: [*a], name: c}\n", "NamesOfOnesOwn": "network: {presets: {any-name: [a.example]}}\n",
	} {
		t.Run(name+"IsNone", func(t *testing.T) {
			c := DefaultConfig()
			if err := c.ReadFile(write(t, file)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("AnAliasOfItself", func(t *testing.T) {
		c := DefaultConfig()
		if err := c.ReadFile(write(t, "network: &a\n  names: *a\n")); fault.Of(err) != fault.Invalid {
			t.Errorf("got %v", err)
		}
	})
}

func TestEveryFieldOfTheConfigurationIsAKey(t *testing.T) {
	var look func(typ reflect.Type, path string)
	look = func(typ reflect.Type, path string) {
		for f := range typ.Fields() {
			if f.IsExported() && f.Tag.Get("yaml") == "" {
				t.Errorf("%s.%s has no key", path, f.Name)
			}
		}
		for _, k := range keysOf(typ) {
			is := k.is
			for is.Kind() == reflect.Slice || is.Kind() == reflect.Map {
				is = is.Elem()
			}
			if is.Kind() == reflect.Struct {
				look(is, below(path, k.name))
			}
		}
	}
	look(reflect.TypeFor[Config](), "")
}
