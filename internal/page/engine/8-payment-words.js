// What buttons say that take money, and what pages say about sums. Words are
// whole words, but in scripts that write without spaces.
(tapin => {
  if (tapin.payWords) return

  const any = (...parts) => `(?:${parts.join('|')})`
  const only = (...parts) => new RegExp(`^[^\\p{L}\\p{N}]*${any(...parts)}[^\\p{L}\\p{N}]*$`, 'u')
  const word = (...parts) => new RegExp(`(?<![\\p{L}])${any(...parts)}(?![\\p{L}])`, 'u')
  const piece = (...parts) => new RegExp(any(...parts), 'u')

  // A sum behind a verb: "pay $12.50", "12,50 € bezahlen", "send £250".
  const sum = '(?:(?:[\\p{Sc}]|[a-z]{2,3}\\$?|kr\\.?|r\\$) ?[\\d.,\' ]*\\d|\\d[\\d.,\' ]* ?(?:[\\p{Sc}]|[a-z]{2,3}|kr\\.?|円|元))'
  const now = '(?:(?: right)? now| today| securely| safely| in full)?'
  const wallets = '(?:paypal|apple ?pay|google ?pay|g ?pay|klarna|shop ?pay|amazon ?pay|venmo|affirm|afterpay|link|card|credit card|debit card|ideal|sepa|pix|twint|bizum|blik|alipay|wechat(?: pay)?|visa|mastercard|cash app(?: pay)?)'
  const thing = '(?:payment|purchase|order|transfer|donation|booking and payment|bill|charge|debit|withdrawal|bid and payment|wire|deposit)'

  tapin.payWords = {
    // Final by themselves: whoever presses this pays.
    surely: [
      only(`pay${now}(?: (?:my |the |your |this )?(?:bill|invoice|balance|total|order|deposit|rent|fee|fine|tax(?:es)?|bill now|amount|amount due|full amount))?(?: ${sum})?${now}(?: (?:with|by|using|via) [^?]{1,30})?`,
        `pay ${sum}(?: (?:now|today|with .{1,24}|to .{1,40}|and .{1,24}))?`, `${wallets} pay`, `(?:buy|check ?out|checkout|pay|donate|subscribe|book|order|continue)(?: now)? with ${wallets}`, `pay (?:to|for) .{1,40}`,
        `(?:confirm|agree|accept|submit|review|approve|authori[sz]e|sign|order|book|reserve|buy|subscribe|continue|place order|save|rent|finish|start)(?: order| booking| purchase)? (?:and|&|\\+) (?:pay|buy|purchase|place (?:your |my )?order|send|transfer|subscribe|donate|charge)(?: ${sum})?${now}`,
        `(?:yes,? )?(?:confirm|submit|complete|finali[sz]e|authori[sz]e|approve|send|process|release|execute|make|finish|place|sign)(?: (?:my|your|the|this|and sign))?(?: (?:online|bank|wire|recurring|one-time|card|bill|final|secure|money))? ${thing}(?: of)?(?: ${sum})?${now}`,
        `(?:confirm|complete|submit)(?: (?:and|&) )?(?:my |your )?(?:purchase|payment|donation|transfer)`, `send (?:money|payment|funds|tip|gift|${sum})(?: now)?(?: to .{1,40})?`, `transfer (?:money|funds|now|${sum})(?: now)?`,
        `tip ${sum}`, `slide to pay.{0,20}`, `swipe to pay.{0,20}`, `hold to pay.{0,20}`, `(?:place|send|submit) (?:my|your|the|an)? ?order(?: now)?(?:,? ${sum})?`, `order now and pay`, `complete (?:my |your |the )?(?:order|checkout)`,
        `donate ${sum}.{0,20}`, `give ${sum}.{0,20}`, `buy (?:it )?(?:now )?for ${sum}`, `subscribe for ${sum}.{0,20}`, `(?:rent|buy) (?:hd |uhd |4k )?${sum}`, `pledge ${sum}`, `top[- ]?up ${sum}`, `deposit ${sum}`, `add ${sum} to .{1,24}`, `1-click (?:buy|order)`, `buy now with 1-click`, `schedule payment`, `pay later in \\d.{0,20}`),
      only('(?:zahlungspflichtig|kostenpflichtig|verbindlich)(?: jetzt)? (?:bestellen|buchen|kaufen|abonnieren|reservieren)', '(?:jetzt |sicher |nun )?(?:be)?zahlen(?: mit .{1,24})?', `(?:jetzt )?${sum} (?:be)?zahlen`, `(?:jetzt )?mit .{1,24} (?:be)?zahlen`, '(?:bestellung|kauf|zahlung|überweisung|buchung|auftrag|spende)(?: jetzt)? (?:abschicken|absenden|abschließen|aufgeben|bestätigen|ausführen|freigeben|senden|tätigen)(?: und (?:be)?zahlen)?', '(?:jetzt )?(?:be)?stellen und (?:be)?zahlen', '(?:jetzt )?bestellen (?:und|&) (?:be)?zahlen', '(?:jetzt )?überweisen', `${sum} (?:überweisen|spenden|senden)`, 'geld senden', 'lastschrift (?:bestätigen|erteilen)', 'kaufen und bezahlen', 'jetzt kostenpflichtig .{1,20}'),
      only(`(?:je )?(?:payer|paie|régler|regler)(?: maintenant| en ligne| la facture| ma commande| par .{1,24}| avec .{1,24})?(?: ${sum})?`, "(?:valider|confirmer|effectuer|finaliser|exécuter|signer)(?: et)? (?:payer|(?:le|mon|la|ma|l['’]|votre|un)? ?(?:paiement|commande|achat|virement|don|règlement)(?: et payer)?)", '(?:passer|valider) (?:la |ma )?commande(?: .{0,20}paiement)?', 'commander et payer', 'commande avec obligation de paiement', "envoyer (?:de l['’]argent|le virement|l['’]argent)", `(?:donner|donne) ${sum}`, 'je confirme (?:le|mon) (?:paiement|virement|achat)'),
      only(`pagar(?: ahora| agora| ya| con .{1,24}| com .{1,24}| (?:la |el |o |a )?(?:factura|fatura|boleto|recibo|conta|total|pedido))?(?: ${sum})?`, '(?:realizar|hacer|confirmar|efectuar|enviar|completar|tramitar|autorizar|firmar|concluir|efetuar|fazer)(?: (?:el|la|mi|tu|o|a|um))? ?(?:pago|pedido|compra|transferencia|transferência|pagamento|pix|donación|doação)(?: y pagar| e pagar| ahora| agora)?', '(?:comprar|pedir|confirmar|reservar|finalizar)(?: \\p{L}+)? [ye] pagar', 'enviar (?:dinero|dinheiro)', '(?:transferir|donar|doar)(?: ahora| agora| dinero| dinheiro)?', `(?:transferir|donar|doar|enviar) ${sum}`, 'pedido con obligación de pago'),
      only(`paga(?:re)?(?: ora| adesso| subito| con .{1,24})?(?: ${sum})?`, "(?:conferma|completa|invia|effettua|autorizza|concludi)(?: (?:l['’]|il|e))? ?(?:ordine|pagamento|acquisto|bonifico|paga|donazione)(?: e paga)?", 'ordina e paga', 'ordine con obbligo di pagare', 'invia denaro', 'acquista e paga', `dona ${sum}`, 'dona ora'),
      only(`betaal(?: nu| veilig| direct| met .{1,24})?(?: ${sum})?`, '(?:nu |direct |veilig )?betalen(?: met .{1,24})?', `${sum} betalen`, '(?:bestellen|boeken|kopen) (?:en|&) betalen', '(?:bestelling|betaling|aankoop|overboeking|overschrijving|opdracht)(?: nu)? (?:plaatsen|bevestigen|afronden|versturen|verzenden|uitvoeren|voltooien)', 'bestelling met betalingsverplichting', '(?:geld )?(?:overmaken|overboeken)', `doneer(?: nu| ${sum})`, 'geld sturen'),
      piece('注文を確定', '注文する$', '注文・支払', '購入を確定', '購入を完了', '支払いを確定', '支払を確定', 'お支払いを(?:確定|完了|実行)', '^(?:今すぐ)?(?:お)?支払う', '今すぐ支払', '決済する', '決済を(?:実行|確定)', '振込を?(?:実行|確定)', '振り込む$', '送金する', '送金を(?:実行|確定)', '寄付する$', 'を支払う$', '課金する'),
      piece('^(?:立即|立刻|马上|确认|確認|去)?(?:支付|付款|缴费|繳費)(?:$|[ ¥￥\\d])', '确认(?:支付|付款|转账|购买|订单并支付)', '確認(?:付款|支付|轉帳|購買)', '提交订单', '提交訂單', '送出訂單', '立即(?:转账|轉帳|充值|儲值|缴费|捐款)', '^(?:转账|轉帳|捐款|充值)$', '订单并支付', '確認下單', '确认下单', '下单并支付'),
    ],
    // Final where the page is about to take money.
    maybe: [
      only(`(?:yes,? )?(?:confirm|submit|complete|finish|agree|accept|approve|authori[sz]e|subscribe|book|reserve|order|send|transfer|buy|purchase|upgrade|renew|donate|give|recharge|deposit|withdraw|ok|okay|yes|join|enroll|register|place|sign|pledge|tip|rent|checkout|check out|top[- ]?up|add funds|reload|confirm and continue|i agree|invest|trade|place trade|continue)${now}`,
        `(?:start|begin|activate|get|upgrade to|switch to|join|confirm|continue|keep|renew|buy|choose)(?: (?:my|your|the|a))?(?: \\p{L}+)? ?(?:membership|subscription|plan|trial|premium|pro|plus|order|booking|reservation|auto-?pay|tickets?|policy|cover(?:age)?|upgrade|service)${now}`,
        `(?:complete|confirm|finish|finali[sz]e|submit|make|request|place)(?: (?:my|your|the|and))? ?(?:booking|reservation|order|checkout|subscription|registration|enrollment|application and pay|trade|bid|request|details|sign)?`, `(?:subscribe|upgrade|renew|book|donate|buy|order|reserve|sign|give|get tickets|purchase|enroll|register|join|invest|reload|recharge)(?: (?:now|today|monthly|yearly|annually|once|me|it|here|tickets?|online))?`, `(?:sign|agree|accept|review|confirm) (?:and|&) (?:submit|continue|subscribe|finish|book|send|complete|join)`, `buy (?:it )?now`, `make a payment`, `set up (?:auto-?pay|payment)`, 'place bid', 'checkout', 'pay in \\d', 'start free trial', 'try (?:it )?(?:free|now).{0,20}', 'redeem and pay'),
      only('bestätigen', 'abschließen', 'absenden', 'freigeben', 'ausführen', 'senden', '(?:jetzt )?(?:kaufen|bestellen|buchen|abonnieren|spenden|aufladen|reservieren|verlängern)', 'sofort-?kaufen?', '(?:weiter|ja|ok)', 'mitglied(?:schaft)? (?:werden|starten|beginnen)', 'abo (?:starten|abschließen)', 'tan (?:bestätigen|senden)', 'kasse', 'auftrag erteilen', 'buchung bestätigen'),
      only('confirmer', 'valider', 'finaliser', 'envoyer', "s['’]abonner(?: maintenant)?", '(?:acheter|commander|réserver|recharger|souscrire)(?: maintenant)?', 'faire un don', 'continuer', 'je m[\'’]abonne', 'je donne', 'terminer', 'accepter', '(?:finaliser|confirmer) (?:la |ma )?réservation', "démarrer l['’]abonnement"),
      only('confirmar', 'finalizar', 'enviar', 'aceptar', 'aceitar', '(?:comprar|suscribirse|suscribirme|assinar|reservar|recargar|recarregar|contratar|concluir|continuar)(?: ahora| agora| ya)?', '(?:finalizar|completar|concluir) (?:la |el |o |a )?(?:compra|pedido|reserva)', '(?:confirmar|completar) (?:la |a )?reserva', 'hacer una donación'),
      only('conferma', 'completa', 'invia', 'procedi', '(?:acquista|ordina|prenota|abbonati|ricarica|sottoscrivi|iscriviti|dona|compra)(?: ora| adesso| subito)?', '(?:conferma|completa) (?:la )?prenotazione', 'continua', 'accetta', 'bonifica'),
      only('bevestigen', 'bevestig', 'afronden', 'versturen', 'verzenden', '(?:koop|kopen|bestel|bestellen|boek|boeken|abonneer|abonneren|reserveer|opwaarderen|doneren|afrekenen)(?: nu)?', 'nu (?:kopen|bestellen|boeken)', 'akkoord', 'doorgaan', 'abonnement (?:starten|afsluiten)', '(?:boeking|reservering) (?:bevestigen|afronden)', 'ondertekenen'),
      piece('^確定(?:する)?$', '^確認(?:する)?$', '^送信(?:する)?$', '購入する', '申し込む', '予約(?:を確定|する)', '^次へ$', '今すぐ購入', 'チャージする', '登録する$', '^購入$', '^実行$'),
      piece('^确[认定]$', '^確[認定]$', '^提交$', '立即(?:购买|購買|订阅|訂閱|预订|預訂|开通)', '去(?:支付|结算)', '^结算', '^結帳$', '^下一步$', '确认(?:订单|预订|开通|订阅)', '^購買$', '^购买$', '同意并(?:继续|开通)'),
    ],
    // Verbs that need no more beside them than a total.
    buys: piece('^(?:buy|purchase|order|subscribe|renew|donate|top[- ]?up|recharge|reload|upgrade)', 'kaufen', 'bestellen', 'buchen', 'abonnieren', 'spenden', 'aufladen', 'acheter', 'commander', 'abonner', 'réserver', 'comprar', 'assinar', 'contratar', 'suscribir', 'acquista', 'ordina', 'prenota', 'abbonati', 'ricarica', 'koop', 'kopen', 'bestel', 'boek', 'doneren', '購入', '购买', '購買', '订阅', '訂閱', '充值', 'チャージ'),
    // Leads there, or has to do with it, and takes nothing.
    never: word('add to', 'continue to', 'proceed to', 'go to', 'back', 'return to', 'cancel', 'edit', 'change', 'remove', 'delete', 'apply', 'download', 'print', 'view', 'history', 'learn', 'search', 'filter', 'newsletter', 'sign in', 'log ?in', 'forgot', 'save for later', 'request', 'request money', 'quote', 'review order', 'calculate', 'estimate', 'refund', 'decline', 'reject', 'later',
      'hinzufügen', 'in den warenkorb', 'zurück', 'weiter zu', 'zur kasse', 'abbrechen', 'ändern', 'bearbeiten', 'anmelden', 'ablehnen', 'später',
      'ajouter', 'retour', 'annuler', 'modifier', 'se connecter', 'continuer vers', 'añadir', 'agregar', 'volver', 'cancelar', 'editar', 'cambiar', 'iniciar sesión', 'adicionar', 'voltar', 'alterar', 'entrar', 'aggiungi', 'indietro', 'annulla', 'modifica', 'accedi', 'toevoegen', 'terug', 'annuleren', 'wijzigen', 'inloggen'),
    // A sum with one of these beside it is what is to be paid.
    total: [
      word('total', 'totals', 'amount', 'amount due', 'due', 'you pay', 'you[\'’]ll pay', 'to pay', 'payable', 'grand total', 'charged', 'you (?:will )?(?:be )?charged', 'you are (?:giving|paying|sending|donating)', 'payment', 'price to pay', 'balance due',
        'gesamtsumme', 'gesamtbetrag', 'gesamtpreis', 'gesamt', 'summe', 'endbetrag', 'endsumme', 'zahlbetrag', 'rechnungsbetrag', 'zu zahlen', 'betrag', 'fällig', 'insgesamt',
        'montant', 'à payer', 'net à payer', 'total ttc', 'somme', 'importe', 'monto', 'a pagar', 'cantidad', 'valor', 'quantia', 'totale', 'importo', 'da pagare', 'totaal', 'totaalbedrag', 'bedrag', 'te betalen', 'te voldoen'),
      piece('合計', '総額', '請求額', '請求金額', '支払額', '支払い?金額', 'お支払い?(?:総額|合計)', '振込金額', '送金額', '应付', '實付', '实付', '总计', '合计', '總計', '總額', '总额', '总金额', '總金額', '金额', '金額', '需付', '共计'),
    ],
    // What a page that takes money speaks of.
    about: [
      word('payment method', 'pay with', 'paying with', 'card ending', 'ending in', 'will be charged', 'be charged', 'you authori[sz]e', 'i authori[sz]e', 'authori[sz]e this', 'withdrawal', 'direct debit', 'billing address', 'billed', 'pay to', 'payee', 'recipient', 'due today', 'amount due', 'checkout', 'from account', 'debit card', 'credit card', 'bank account', 'sort code', 'iban', 'review and sign', 'payment', 'security code',
        'zahlungsart', 'zahlungsmethode', 'zahlungsweise', 'lastschrift', 'kreditkarte', 'empfänger', 'überweisung', 'abgebucht', 'kasse', 'zahlung', 'auftraggeber', 'moyen de paiement', 'mode de paiement', 'carte bancaire', 'bénéficiaire', 'virement', 'prélevé', 'prélèvement', 'paiement', 'método de pago', 'forma de pago', 'tarjeta', 'destinatario', 'beneficiario', 'transferencia', 'pago', 'forma de pagamento', 'cartão', 'beneficiário', 'pagamento', 'destinatário', 'metodo di pagamento', 'carta di credito', 'bonifico', 'addebito', 'betaalmethode', 'betaalwijze', 'creditcard', 'begunstigde', 'afgeschreven', 'betaling', 'ontvanger', 'overboeking'),
      piece('支払い?方法', 'クレジットカード', 'お支払い', '振込先', '注文内容', '支付方式', '付款方式', '银行卡', '信用卡', '收款', '扣款', '确认订单', '付款'),
    ],
    cardField: /card.?(?:number|no\b|num)|cardnumber|cc-?num|\bcvc\b|\bcvv\b|\bcsc\b|security.?code|kartennummer|pr[üu]fziffer|num[ée]ro.{0,4}carte|cryptogramme|n[úu]mero.{0,4}(?:tarjeta|cart[ãa]o)|numero.{0,4}carta|kaartnummer|カード番号|卡号|卡號|^iban$/i,
  }
})(globalThis.tapin ??= {})
