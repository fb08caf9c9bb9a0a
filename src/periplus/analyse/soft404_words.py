"""How do error pages call themselves, in the languages of the web? Without marks and in lower case, as `without_marks` leaves them."""

from __future__ import annotations

PHRASES = frozenset(
    """
    404 | error 404 | 404 error | http 404 | http error 404 | error code 404 | http status 404 | 404 not found | not found | 410 gone
    page not found | file not found | the page was not found | this page was not found | page cannot be found | page can't be found
    the page cannot be found | the page can't be found | the page you requested was not found | the page you requested could not be found
    the requested page was not found | the requested page could not be found | the page you are looking for was not found
    the page you are looking for does not exist | page does not exist | the page does not exist | this page does not exist
    this page doesn't exist | this page isn't available | page not available | page unavailable | page is missing | missing page
    document not found | object not found | resource not found | requested url was not found | the requested url was not found on this server
    we can't find that page | we can't find this page | we couldn't find that page | sorry, page not found | this page could not be found
    stranka nenalezena | stranka nebyla nalezena | stranka neexistuje | tato stranka neexistuje | pozadovana stranka nebyla nalezena
    pozadovana stranka neexistuje | stranku se nepodarilo najit | chyba 404 | nenalezeno | soubor nenalezen | clanek nenalezen
    stranka nebola najdena | stranka sa nenasla | pozadovana stranka neexistuje | nenajdene
    seite nicht gefunden | die seite wurde nicht gefunden | diese seite wurde nicht gefunden | diese seite existiert nicht
    die seite existiert nicht | seite nicht verfugbar | nicht gefunden | fehler 404 | datei nicht gefunden | seite existiert nicht
    page non trouvee | page introuvable | page inexistante | cette page n'existe pas | la page n'existe pas | erreur 404 | introuvable
    la page demandee n'existe pas | la page demandee est introuvable | cette page est introuvable
    pagina no encontrada | no encontrado | la pagina no existe | esta pagina no existe | pagina inexistente | no se encontro la pagina
    no se ha encontrado la pagina | pagina nao encontrada | nao encontrado | a pagina nao existe | esta pagina nao existe | erro 404
    pagina non trovata | la pagina non esiste | questa pagina non esiste | errore 404 | non trovato | pagina niet gevonden | niet gevonden
    deze pagina bestaat niet | fout 404 | sidan hittades inte | sidan kunde inte hittas | sidan finns inte | sidan saknas | fel 404
    siden blev ikke fundet | siden findes ikke | side ikke fundet | siden ble ikke funnet | siden finnes ikke | fant ikke siden | feil 404 | fejl 404
    sivua ei loydy | sivua ei loytynyt | sivua ei ole | virhe 404 | lehte ei leitud | puslapis nerastas | lapa nav atrasta
    strona nie znaleziona | nie znaleziono strony | strona nie zostala znaleziona | strona nie istnieje | ta strona nie istnieje | blad 404
    nie znaleziono | az oldal nem talalhato | a keresett oldal nem talalhato | oldal nem talalhato | nem talalhato | hiba 404 | 404-es hiba
    pagina nu a fost gasita | pagina nu exista | pagina negasita | eroare 404 | stranica nije pronadena | stranica nije pronadjena
    stranica ne postoji | stran ne obstaja | strani ni mogoce najti | greska 404 | napaka 404 | sayfa bulunamadi | aradiginiz sayfa bulunamadi
    hata 404 | khong tim thay trang | trang khong ton tai | halaman tidak ditemukan
    страница не наидена | страница не существует | такои страницы не существует | запрашиваемая страница не наидена | такои страницы нет
    ошибка 404 | не наидено | 404 ошибка | сторінку не знаидено | сторінка не знаидена | сторінки не існує | помилка 404
    страницата не е намерена | страницата не съществува | грешка 404 | страница ниjе пронаћена | страница не постоjи
    η σελιδα δεν βρεθηκε | σφαλμα 404 | הדף לא נמצא | העמוד לא נמצא | الصفحة غير موجودة | الصفحه غير موجوده | صفحه یافت نشد
    页面不存在 | 页面未找到 | 找不到页面 | 您访问的页面不存在 | 抱歉,页面不存在 | 页面没有找到 | 找不到網頁 | 找不到頁面 | 頁面不存在
    ページが見つかりません | お探しのページは見つかりません | お探しのページは見つかりませんでした | 페이지를 찾을 수 없습니다 | ไม่พบหน้า
    """.replace("\n", " | ").split("|")
)
"""Each is a whole title, heading or part of a title: `How to mend 404 pages` is none."""

OPENINGS = ("oops", "sorry", "ups", "uh oh", "whoops", "omlouvame se", "es tut uns leid", "desole", "lo sentimos", "извините", "error", "http", "404", "410")
"""What may stand before a phrase: `Oops! Page not found`, `404: Page not found`."""
