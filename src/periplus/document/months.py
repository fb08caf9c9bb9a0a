"""Which month does a word name, in the languages of Europe?

Forms as dates have them (genitives where a language counts days so), in lower case and without diacritics: "brezna" is března. Beside a day and a year, short
forms mean nothing else.
"""

from __future__ import annotations

from periplus.document.digest import without_marks

_FORMS = (
    "january jan januar janner janvier janv enero gennaio janeiro januari ledna leden januara stycznia styczen января январь янв січня januar tammikuuta"
    " ocak ianuarie ιανουαριου sijecnja januarja ene gen",
    "february feb februar feber fevrier fevr febrero febbraio fevereiro februari unora unor februara lutego luty февраля февраль фев лютого"
    " helmikuuta subat februarie φεβρουαριου veljace februarja fev",
    "march mar marz maerz mars marzo marco maart brezna brezen marca marzec марта март березня marcius maaliskuuta mart martie μαρτιου marts ozujka",
    "april apr avril avr abril aprile dubna duben aprila kwietnia kwiecien апреля апрель апр квітня aprilis huhtikuuta nisan aprilie απριλιου travnja abr",
    "may mai mayo maggio maio mei kvetna kveten maja maj мая май травня majus toukokuuta mayis μαιου svibnja mag",
    "june jun juni juin junio giugno junho cervna cerven juna czerwca czerwiec июня июнь июн червня junius kesakuuta haziran iunie ιουνιου lipnja junija giu",
    "july jul juli juillet juil julio luglio julho cervence cervenec jula lipca lipiec июля июль июл липня julius heinakuuta temmuz iulie"
    " ιουλιου srpnja julija lug",
    "august aug aout agosto augustus srpna srpen augusta sierpnia sierpien августа август авг серпня augusztus elokuuta agustos αυγουστου"
    " kolovoza avgusta augusti ago",
    "september sep sept septembre septiembre settembre setembro zari septembra wrzesnia wrzesien сентября сентябрь сен вересня szeptember syyskuuta"
    " eylul septembrie σεπτεμβριου rujna set",
    "october oct oktober okt octobre octubre ottobre outubro rijna rijen oktobra pazdziernika pazdziernik октября октябрь окт жовтня"
    " lokakuuta ekim octombrie οκτωβριου ott out",
    "november nov novembre noviembre novembro listopadu listopad novembra listopada ноября ноябрь ноя marraskuuta kasim noiembrie νοεμβριου studenoga",
    "december dec dezember dez decembre diciembre dicembre dezembro prosince prosinec decembra grudnia grudzien декабря декабрь дек грудня"
    " joulukuuta aralik decembrie δεκεμβριου prosinca desember dic",
)
_SHORT_FORMS = (
    "sty led γεναρη", "lut uno φλεβαρη", "bre marc μαρτη", "kwi dub απριλη", "kve μαη", "cze cvn ιουνη", "lip cvc ιουλη", "sie srp",
    "wrz zar szept σεπτεμβρη", "paz rij οκτωβρη", "lis νοεμβρη", "gru pro δεκεμβρη",
)  # fmt: skip
MONTHS = {form: month for rows in (_SHORT_FORMS, _FORMS) for month, forms in enumerate(rows, 1) for form in without_marks(forms).split()}
