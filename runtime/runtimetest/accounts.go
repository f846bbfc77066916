// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"strings"
	"sync"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// unsuited are accounts that an image refuses, by the field that is wrong.
var unsuited = []struct {
	field string
	sandbox.Account
}{
	{"account.name", sandbox.Account{Name: "bin"}},
	{"account.home", sandbox.Account{Name: "dev", Home: "/etc"}},
	{"account.home", sandbox.Account{Name: "dev", Home: "/etc/passwd"}},
	{"account.home", sandbox.Account{Name: "dev", Home: "/etc/passwd/x"}},
	{"account.workdir", sandbox.Account{Name: "dev", Workdir: "/bin/x"}}, // through a link
	{"account.workdir", sandbox.Account{Name: "dev", Workdir: "/usr"}},
	{"account.workdir", sandbox.Account{Name: "dev", Workdir: "/home/dev/../../usr"}},
}

// placed is what a command of an account says of itself.
const (
	whoAmI = `echo "$(id -un):$(id -gn):$(id -u):$HOME:$(cd; pwd):$USER:$LOGNAME"; pwd; stat -c '%U:%a' . ~; touch x ~/y && stat -c %u x ~/y; grep -c '^sandbox:' /etc/passwd /etc/group`
	iAmDev = "dev:dev:1000:/home/dev:/home/dev:dev:dev\n/srv/app/src\ndev:755\ndev:755\n1000\n1000\n/etc/passwd:0\n/etc/group:0"
)

func accounts(t *testing.T, s *suite) {
	s.need(t, runtime.RootUser)
	dev := sandbox.Account{Name: "dev", Home: "/home/dev", Workdir: "/srv/app/src"}
	is := func(t *testing.T, b *box) {
		t.Helper()
		if got, want := b.run(whoAmI).Stdout, iAmDev+"\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if o := b.asRoot("stat -c '%n %u %a' /srv /srv/app /etc /etc/passwd /etc/group /home; ls /etc/.sandpit* 2>/dev/null"); o.Stdout != "/srv 0 755\n/srv/app 0 755\n/etc 0 755\n/etc/passwd 0 644\n/etc/group 0 644\n/home 0 755\n" {
			t.Errorf("what is not the user's: %q", o.Stdout)
		}
	}
	t.Run("OneThatRunsIsCalledAndPlacedAnew", func(t *testing.T) {
		b := s.create(t, s.spec())
		for _, a := range unsuited {
			err := b.agent.SetAccount(t.Context(), a.Account, false)
			if f := fault.As(err).Fields; !fault.Is(err, fault.Invalid) || len(f) != 1 || f[0].Name != a.field {
				t.Errorf("%+v: %v, want the field %s to be wrong", a.Account, err, a.field)
			}
		}
		if got := b.ok("id -un; pwd; echo ~"); got != "sandbox\n/workspace\n/home/sandbox" {
			t.Errorf("after refusals it is %q", got)
		}
		if err := b.agent.SetAccount(t.Context(), dev, false); err != nil {
			t.Fatal(err)
		}
		is(t, b)
		s.sudoOfAccount(t, b)
	})
	d, ok := s.driver.(runtime.Accounter)
	if !ok {
		return // agents make all accounts
	}
	t.Run("WhoeverAsksAtOnceFindsIt", func(t *testing.T) {
		spec := s.spec()
		spec.Renames = true // as in a pool
		b := s.create(t, spec)
		if !d.Suits(spec.Image, dev) {
			t.Fatal("the account does not suit the image")
		}
		if err := b.agent.BeginAccount(t.Context(), dev); err != nil {
			t.Fatal(err)
		}
		foundByMany(t, b)
		is(t, b)
	})
	t.Run("AnEmptyDiskBeginsWithIt", func(t *testing.T) {
		spec := s.spec()
		for _, a := range unsuited {
			if d.Suits(spec.Image, a.Account) {
				t.Errorf("%+v suits the image", a.Account)
			}
		}
		if !d.Suits(spec.Image, dev) {
			t.Fatal("the account does not suit the image")
		}
		spec.Account = &runtime.Account{Account: dev}
		b := s.create(t, spec)
		foundByMany(t, b)
		is(t, b)
		if err := b.agent.AwaitAccount(t.Context()); err != nil {
			t.Errorf("AwaitAccount: %v", err)
		}
		b.ok("echo kept > ~/kept; rm -rf x; chmod 700 .")
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		spec.Account.Again = true
		if err := b.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if got := b.ok("id -un; pwd; cat ~/kept; stat -c %a .; touch x"); got != "dev\n/srv/app/src\nkept\n700" {
			t.Errorf("in its next life: %q", got)
		}
	})
	t.Run("NoSandboxHasTheAccountOfAnother", func(t *testing.T) {
		spec := s.spec()
		spec.Account = &runtime.Account{Account: dev}
		s.create(t, spec).ok("id -un")
		if got := s.create(t, s.spec()).ok("id -un; pwd; ls /home /srv; ! grep '^dev:' /etc/passwd"); got != "sandbox\n/workspace\n/home:\nsandbox\n\n/srv:" {
			t.Errorf("the next one is %q", got)
		}
	})
}

// foundByMany has many ask at the same time, none of whom may see what was before.
func foundByMany(t *testing.T, b *box) {
	t.Helper()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := b.ok("id -un; pwd; echo ~"); got != "dev\n/srv/app/src\n/home/dev" {
				t.Errorf("one of many is %q", got)
			}
		})
	}
	all.Wait()
}

// sudoOfAccount tries sudo by names of accounts in a sandbox whose user is dev.
func (s *suite) sudoOfAccount(t *testing.T, b *box) {
	t.Helper()
	if !s.has(t, runtime.Sudo) {
		if o := b.run("sudo id -u"); o.ExitCode == 0 {
			t.Errorf("sudo works where the driver has none: %+v", o)
		}
		return
	}
	if err := b.agent.SetSudo(t.Context(), agent.SudoOn); err != nil {
		t.Fatal(err)
	}
	if got := b.ok("sudo -u sandbox id -un; sudo -u dev id -un; sudo -iu sandbox sh -c 'echo $USER:$HOME'; sudo sh -c 'echo $SUDO_USER'"); got != "dev\ndev\ndev:/home/dev\ndev" {
		t.Errorf("sudo to the own account: %q", got)
	}
	if o := b.run("sudo -u nobodyknows id"); o.ExitCode != 1 || !strings.Contains(o.Stderr, `user "nobodyknows" is none of this sandbox; there are dev, root, `) || !strings.Contains(o.Stderr, "useradd -m NAME") {
		t.Errorf("an unknown user: %+v", o)
	}
	if got := b.ok("sudo useradd -M sandbox; sudo -u sandbox id -u"); got == "1000" { // the list has the first word
		t.Errorf("another account of that name is %q", got)
	}
	b.asRoot("userdel sandbox")
}
