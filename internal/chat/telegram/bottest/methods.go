package bottest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// deletable is how long a message can be deleted.
const deletable = 48 * time.Hour

type method struct {
	fields []string
	do     func(s *Server, f *form) (any, *refusal) // with the lock held
}

var methods = map[string]method{
	"getMe": {nil, func(*Server, *form) (any, *refusal) {
		return map[string]any{"id": 8000000001, "is_bot": true, "first_name": "tapin", "username": Username}, nil
	}},
	"setMyCommands":   {[]string{"commands"}, func(*Server, *form) (any, *refusal) { return true, nil }},
	"getWebhookInfo":  {nil, func(*Server, *form) (any, *refusal) { return map[string]any{"url": ""}, nil }},
	"deleteWebhook":   {[]string{"drop_pending_updates"}, func(*Server, *form) (any, *refusal) { return true, nil }},
	"sendMessage":     {[]string{"chat_id", "text", "entities", "link_preview_options", "disable_notification", "reply_parameters", "reply_markup", "protect_content"}, (*Server).sendMessage},
	"sendPhoto":       {[]string{"chat_id", "photo", "caption", "caption_entities", "disable_notification", "reply_parameters", "reply_markup", "protect_content"}, (*Server).sendPhoto},
	"editMessageText": {[]string{"chat_id", "message_id", "text", "entities", "link_preview_options", "reply_markup"}, func(s *Server, f *form) (any, *refusal) { return s.edit(f, "text", "entities", 4096) }},
	"editMessageCaption": {[]string{"chat_id", "message_id", "caption", "caption_entities", "reply_markup"}, func(s *Server, f *form) (any, *refusal) {
		return s.edit(f, "caption", "caption_entities", 1024)
	}},
	"deleteMessage":       {[]string{"chat_id", "message_id"}, (*Server).deleteMessage},
	"answerCallbackQuery": {[]string{"callback_query_id", "text", "show_alert"}, (*Server).answer},
}

// chat finds whom a request is for. Called with the lock held, as all here.
func (s *Server) chat(f *form) (int64, *refusal) {
	id, err := strconv.ParseInt(f.values["chat_id"], 10, 64)
	u := s.users[id]
	switch {
	case err != nil || id == 0:
		return 0, bad("chat_id is empty")
	case u == nil:
		return 0, bad("chat not found")
	case !u.started:
		return 0, &refusal{status: http.StatusForbidden, why: "Forbidden: bot can't initiate conversation with a user"}
	case u.blocked:
		return 0, &refusal{status: http.StatusForbidden, why: "Forbidden: bot was blocked by the user"}
	}
	return id, nil
}

func (s *Server) sendMessage(f *form) (any, *refusal) {
	text, no := f.text("text", "entities", 4096)
	if no == nil && text == "" {
		no = bad("message text is empty")
	}
	if no != nil {
		return nil, no
	}
	return s.send(f, &Message{Text: text, entities: f.values["entities"]})
}

func (s *Server) sendPhoto(f *form) (any, *refusal) {
	text, no := f.text("caption", "caption_entities", 1024)
	if no != nil {
		return nil, no
	}
	photo, no := f.photo()
	if no != nil {
		return nil, no
	}
	return s.send(f, &Message{Text: text, Photo: photo, entities: f.values["caption_entities"]})
}

func (s *Server) send(f *form, m *Message) (any, *refusal) {
	chat, no := s.chat(f)
	if no != nil {
		return nil, no
	}
	buttons, no := f.keyboard(chat > 0)
	if no != nil {
		return nil, no
	}
	if raw := f.values["reply_parameters"]; raw != "" {
		var to struct {
			MessageID int  `json:"message_id"`
			Anyway    bool `json:"allow_sending_without_reply"`
		}
		if json.Unmarshal([]byte(raw), &to) != nil || to.MessageID == 0 {
			return nil, bad("can't parse reply parameters")
		}
		if s.find(chat, to.MessageID) != nil {
			m.ReplyTo = to.MessageID
		} else if !to.Anyway {
			return nil, bad("message to be replied not found")
		}
	}
	s.lastID++
	m.ID, m.Chat, m.FromBot, m.Buttons, m.At, m.markup = s.lastID, chat, true, buttons, time.Now(), f.values["reply_markup"]
	m.date = m.At
	s.messages[chat] = append(s.messages[chat], m)
	return s.shown(m), nil
}

func (s *Server) edit(f *form, name, entities string, most int) (any, *refusal) {
	chat, no := s.chat(f)
	if no != nil {
		return nil, no
	}
	id, _ := strconv.Atoi(f.values["message_id"])
	m := s.find(chat, id)
	text, no := f.text(name, entities, most)
	if no != nil {
		return nil, no
	}
	buttons, no := f.keyboard(chat > 0)
	switch {
	case no != nil:
		return nil, no
	case m == nil:
		return nil, bad("message to edit not found")
	case !m.FromBot:
		return nil, bad("message can't be edited")
	case name == "text" && m.Photo != nil:
		return nil, bad("there is no text in the message to edit")
	case name == "caption" && m.Photo == nil:
		return nil, bad("there is no caption in the message to edit")
	case name == "text" && text == "":
		return nil, bad("message text is empty")
	case text == m.Text && f.values[entities] == m.entities && f.values["reply_markup"] == m.markup:
		return nil, bad("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Text, m.entities, m.markup, m.Buttons = text, f.values[entities], f.values["reply_markup"], buttons
	m.Edits++
	m.EditedAt = time.Now()
	return s.shown(m), nil
}

func (s *Server) deleteMessage(f *form) (any, *refusal) {
	chat, no := s.chat(f)
	if no != nil {
		return nil, no
	}
	id, _ := strconv.Atoi(f.values["message_id"])
	m := s.find(chat, id)
	switch {
	case m == nil:
		return nil, bad("message to delete not found")
	case s.manners.NoDelete || time.Since(m.date) > deletable:
		return nil, bad("message can't be deleted for everyone")
	}
	s.messages[chat] = slices.DeleteFunc(s.messages[chat], func(o *Message) bool { return o == m })
	return true, nil
}

func (s *Server) answer(f *form) (any, *refusal) {
	id := f.values["callback_query_id"]
	if utf8.RuneCountInString(f.values["text"]) > 200 {
		return nil, bad("MESSAGE_TOO_LONG")
	}
	answered, known := s.queries[id]
	if !known || answered {
		return nil, bad("query is too old and response timeout expired or query ID is invalid")
	}
	s.queries[id] = true
	return true, nil
}

func (s *Server) find(chat int64, id int) *Message {
	for _, m := range s.messages[chat] {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// shown is a message as the API tells of it.
func (s *Server) shown(m *Message) map[string]any {
	from := map[string]any{"id": m.Chat, "is_bot": false, "first_name": s.users[m.Chat].name}
	if m.FromBot {
		from = map[string]any{"id": 8000000001, "is_bot": true, "first_name": "tapin", "username": Username}
	}
	out := map[string]any{
		"message_id": m.ID, "from": from, "date": m.date.Unix(),
		"chat": map[string]any{"id": m.Chat, "type": "private", "first_name": s.users[m.Chat].name},
	}
	switch {
	case m.Photo != nil:
		out["photo"] = []map[string]any{{"file_id": "p" + strconv.Itoa(m.ID), "file_unique_id": "u" + strconv.Itoa(m.ID), "width": 390, "height": 844}}
		out["caption"] = m.Text
	default:
		out["text"] = m.Text
	}
	if m.ReplyTo != 0 {
		if to := s.find(m.Chat, m.ReplyTo); to != nil {
			out["reply_to_message"] = s.shown(to)
		}
	}
	return out
}
