package bottest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Enter lets a person know the bot; one who has started it can be written to.
func (s *Server) Enter(id int64, name string, started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[id] = &user{name: name, started: started}
}

// Block has a person block the bot, or not any more.
func (s *Server) Block(id int64, blocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[id].blocked = blocked
}

// Say has a person write to the bot, in reply to a message if one is given.
func (s *Server) Say(from int64, text string, replyTo int) (id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[from].started = true
	s.lastID++
	m := &Message{ID: s.lastID, Chat: from, Text: text, ReplyTo: replyTo, At: time.Now()}
	m.date = m.At
	s.messages[from] = append(s.messages[from], m)
	s.push("message", s.shown(m))
	return m.ID
}

// Tap has a person press a button. It panics when there is none: a test that
// presses what is not there is wrong.
func (s *Server) Tap(from int64, message int, words string) {
	s.mu.Lock()
	m := s.find(from, message)
	if m == nil {
		s.mu.Unlock()
		panic(fmt.Sprintf("there is no message %d", message))
	}
	b, ok := m.Button(words)
	s.mu.Unlock()
	if !ok || b.Data == "" {
		panic(fmt.Sprintf("message %d has no button %q to press", message, words))
	}
	s.Press(from, message, b.Data)
}

// Press sends a callback, also one whose button is long gone.
func (s *Server) Press(from int64, message int, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := "q" + strconv.FormatInt(s.nextID, 10)
	s.queries[query] = false
	body := map[string]any{
		"id": query, "from": map[string]any{"id": from, "is_bot": false, "first_name": s.name(from)},
		"chat_instance": "1", "data": data,
	}
	if m := s.find(from, message); m != nil {
		body["message"] = s.shown(m)
	} else {
		body["message"] = map[string]any{"chat": map[string]any{"id": from, "type": "private"}, "message_id": message, "date": 0}
	}
	s.push("callback_query", body)
}

func (s *Server) name(id int64) string {
	if u := s.users[id]; u != nil {
		return u.name
	}
	return "somebody"
}

// Push delivers any update: forwards, edits, groups, whatever a test thinks of.
func (s *Server) Push(kind string, body map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(kind, body)
}

// Replay delivers an update under an old id, also one that was confirmed.
func (s *Server) Replay(kind string, id int64, body map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastTaken = append(s.lastTaken, s.made(id, kind, body)...)
	s.tell()
}

// Forget has a person delete a message.
func (s *Server) Forget(chat int64, message int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[chat] = slices.DeleteFunc(s.messages[chat], func(m *Message) bool { return m.ID == message })
}

// Age makes a message as old as that.
func (s *Server) Age(chat int64, message int, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(chat, message); m != nil {
		m.date = m.date.Add(-by)
	}
}

// LastUpdate is the id of the newest update.
func (s *Server) LastUpdate() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextID
}

// SkipUpdates moves the ids of updates, as the real server does after a week of
// silence; it may be to smaller ones.
func (s *Server) SkipUpdates(to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID = to
}

func (s *Server) push(kind string, body map[string]any) {
	s.nextID++
	s.deliver(s.nextID, kind, body)
}

func (s *Server) deliver(id int64, kind string, body map[string]any) {
	s.updates = append(s.updates, s.made(id, kind, body)...)
	s.tell()
}

// made is an update, or nothing if it cannot be written.
func (s *Server) made(id int64, kind string, body map[string]any) []update {
	raw, err := json.Marshal(map[string]any{"update_id": id, kind: body})
	if err != nil {
		s.problem("an update cannot be written: %v", err)
		return nil
	}
	return []update{{id, kind, raw}}
}
