package cli

import (
	"encoding/xml"
	"strings"
	"unicode"

	"tapin/internal/fault"
)

// service is what a service manager has to know.
type service struct {
	program string // absolute
	home    string
	user    string // a user of its own; empty means the one who asks
	chrome  string // the browser to use, if one was named
}

// check refuses paths that a line of a unit cannot hold.
func (s service) check() error {
	for _, text := range []string{s.program, s.home, s.user, s.chrome} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return fault.New(fault.InvalidRequest, "", "a service cannot be made of a path with control characters in it")
		}
	}
	if strings.ContainsAny(s.program, `"'\`) {
		return fault.New(fault.InvalidRequest, "", "systemd runs no program with quotes or backslashes in its path, as in %s", clean(s.program)).
			WithHint("Move it to where its path has none, such as /usr/local/bin/tapin.")
	}
	return nil
}

func (s service) variables() [][2]string {
	vars := [][2]string{{"TAPIN_HOME", s.home}}
	if s.chrome != "" {
		vars = append(vars, [2]string{"TAPIN_CHROME", s.chrome})
	}
	return vars
}

// unitTop is common to both kinds of unit. KillMode=process leaves it to the
// daemon to end what it started, so that browsers outlive a daemon that was
// killed; the daemon's own end takes less than TimeoutStopSec.
const unitTop = `[Unit]
Description=tapin, a browser that can ask for help
{after}StartLimitIntervalSec=10min
StartLimitBurst=5

[Service]
Type=exec
ExecStart={program} up --no-check
{environment}Restart=on-failure
RestartSec=5s
TimeoutStopSec=20s
KillMode=process
KillSignal=SIGTERM
UMask=0077
NoNewPrivileges=yes
`

// hardening is for a unit with a user of its own. What is not in it would break
// the browser: its sandbox makes namespaces of its own (RestrictNamespaces,
// and whatever puts another /proc in the place of the real one), its compiler
// writes code (MemoryDenyWriteExecute), and its system calls change with every
// version (SystemCallFilter).
const hardening = `User={user}
Group={user}
WorkingDirectory={state}
ProtectSystem=strict
ReadWritePaths={state}
ProtectHome=yes
PrivateTmp=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
CapabilityBoundingSet=
`

// unit is the service as systemd reads it.
func (s service) unit() string {
	var env strings.Builder
	for _, v := range s.variables() {
		env.WriteString("Environment=" + unitWord(v[0]+"="+v[1]) + "\n")
	}
	text, target, after := unitTop, "default.target", ""
	if s.user != "" { // a user's own manager knows nothing of the network
		text, target, after = text+hardening, "multi-user.target", "After=network-online.target\nWants=network-online.target\n"
	}
	text = strings.NewReplacer("{program}", unitWord(s.program), "{environment}", env.String(), "{after}", after,
		"{user}", s.user, "{state}", stateFolder(linux)).Replace(text)
	return text + "\n[Install]\nWantedBy=" + target + "\n"
}

// unitWord quotes a word for a unit: a program's path or an assignment, in both
// of which a dollar is a dollar.
func unitWord(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s)
	if strings.ContainsAny(s, " '\\\";") {
		return `"` + s + `"`
	}
	return s
}

// plistLabel names the service to launchd.
const plistLabel = "tapin"

// plist is the service as launchd reads it. AbandonProcessGroup is what
// KillMode=process is to systemd.
func (s service) plist() string {
	var b strings.Builder
	key := func(name string) { b.WriteString("\t<key>" + name + "</key>\n") }
	str := func(indent, text string) { b.WriteString(indent + "<string>" + xmlText(text) + "</string>\n") }
	b.WriteString(xml.Header +
		`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n" +
		`<plist version="1.0">` + "\n<dict>\n")
	key("Label")
	str("\t", plistLabel)
	key("ProgramArguments")
	b.WriteString("\t<array>\n")
	for _, word := range []string{s.program, "up", "--no-check"} {
		str("\t\t", word)
	}
	b.WriteString("\t</array>\n")
	key("EnvironmentVariables")
	b.WriteString("\t<dict>\n")
	for _, v := range s.variables() {
		b.WriteString("\t\t<key>" + v[0] + "</key>\n")
		str("\t\t", v[1])
	}
	b.WriteString("\t</dict>\n")
	if s.user != "" {
		key("UserName")
		str("\t", s.user)
		key("GroupName")
		str("\t", s.user)
	}
	key("RunAtLoad")
	b.WriteString("\t<true/>\n")
	key("KeepAlive")
	b.WriteString("\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n")
	key("ThrottleInterval")
	b.WriteString("\t<integer>10</integer>\n")
	key("ExitTimeOut")
	b.WriteString("\t<integer>20</integer>\n")
	key("AbandonProcessGroup")
	b.WriteString("\t<true/>\n")
	key("Umask")
	b.WriteString("\t<integer>63</integer>\n") // 0077
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder does not fail
	return b.String()
}
